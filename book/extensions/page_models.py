"""Models that explorables compute with become files of their own, which a page loads when asked to.

Among the data of its figure (`plots.explorable`), a cell hands over its `model`, parameters as
`models.safetensors` packs them, in base64. Here they are taken out of the page into
`_static/models/`, under a name that changes with them; the page keeps the address.
"""

import re
from base64 import b64decode
from hashlib import sha256
from pathlib import Path

from sphinx.application import Sphinx

MODEL = re.compile(r'("model":")([A-Za-z0-9+/=]{99,})')


def take_out(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Write a page's models as files, and put their addresses into the page."""

    def written(match: re.Match) -> str:
        file = b64decode(match[2])
        name = f"_static/models/{sha256(file).hexdigest()[:12]}.safetensors"
        path = Path(app.outdir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file)
        return match[1] + context["pathto"](name, resource=True)

    if app.builder.format == "html" and "body" in context:
        context["body"] = MODEL.sub(written, context["body"])


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", take_out, priority=600)  # once the front page has its own
    return {"parallel_read_safe": True, "parallel_write_safe": True}
