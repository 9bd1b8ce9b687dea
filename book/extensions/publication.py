"""What the book's address, repository and authors add to its pages; nothing if they are not set.

* `[book] address` in `course.toml`, or else `html: baseurl` in `_config.yml`: each page's canonical
  address, what a link to it shows elsewhere (title, description, picture), `sitemap.xml`,
  `robots.txt`. An address that ends in `.example` is a placeholder, and counts as none.
* `launch: {repository: …}`: "Edit this page" and "Report a mistake" at the foot of each page.
* `author`, and `date-released` in `CITATION.cff`: who made the book, and when.

The page for addresses that lead nowhere, `404.html`, is self-contained, since it may be shown in
any folder. So is `index.html`, which redirects to the front page; Sphinx's own would be no more
than the redirect, without an icon, and browsers would ask the host for one. The PDF is linked if it
has been printed.
"""

import html
import re
import shutil
from pathlib import Path
from string import Template
from urllib.parse import quote, urlencode, urlsplit

import yaml
from page_weight import describe
from sphinx.application import Sphinx

from autograder.gradebook.course_file import read_course

ROOT = Path(__file__).resolve().parents[2]
CITATION = ROOT / "CITATION.cff"
PRINTED = ROOT / "build" / "attention-by-hand.pdf"
CARD = "_static/card.png"
TEMPLATES = Path(__file__).parent / "templates"
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
UNLISTED = {"search.html", "genindex.html", "404.html", "index.html"}
OURS = re.compile(
    r'<(?:link rel="canonical"|meta property="og:\w+"|meta name="twitter:card")[^>]*>\n?'
)


def address(baseurl: str | None) -> str:
    """Where the book is published, with a slash at the end; "" if that is not set."""
    host = urlsplit(baseurl or "").hostname or ""
    if not host or host == "example" or host.endswith(".example"):
        return ""
    return baseurl.rstrip("/") + "/"


# --- what a page says about itself ---------------------------------------------------------------


def identify(page: str, name: str, base: str) -> str:
    """A page with its one address and with what a link to it shows elsewhere."""
    title = TITLE.search(page)
    page = OURS.sub("", page)  # those of an earlier build
    if not base or not title:
        return page
    # the front page has two files; its address is the book's
    url = base if name in ("index.html", "book/intro.html") else base + quote(name)
    kind = "website" if url == base else "article"
    facts = {
        "og:title": html.unescape(title[1]),
        "og:description": describe(page),
        "og:type": kind,
        "og:url": url,
        "og:image": base + CARD,
    }
    tags = [f'<link rel="canonical" href="{html.escape(url)}">']
    tags += [f'<meta property="{k}" content="{html.escape(v)}">' for k, v in facts.items() if v]
    tags.append('<meta name="twitter:card" content="summary_large_image">')
    return page.replace("</head>", "\n".join([*tags, "</head>"]), 1)


def sitemap(names: list[str], base: str) -> str:
    """The list of pages that search engines read."""
    urls = [base + ("" if name == "book/intro.html" else quote(name)) for name in sorted(names)]
    lines = [f"<url><loc>{html.escape(url)}</loc></url>" for url in urls]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
            *lines,
            "</urlset>\n",
        ]
    )


def card(title: str, path: Path) -> None:
    """Draw the picture that goes with a link: the title over a row of attention weights."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="#fcfcfa")
    figure.text(0.08, 0.66, title, fontsize=58, weight="bold", color="#1f2a37")
    line = "Write attention yourself,\nand find out why each of its parts is there"
    figure.text(0.08, 0.46, line, fontsize=27, color="#414b5a", linespacing=1.4)
    axes = figure.add_axes((0.08, 0.1, 0.84, 0.28), frameon=False)
    scores = np.cos(np.arange(24) * 0.9) * np.linspace(0.5, 3, 24)
    weights = np.exp(scores) / np.exp(scores).sum()
    axes.bar(np.arange(24), weights, width=0.7, color="#0072b2")
    axes.axis("off")
    figure.savefig(path, metadata={"Software": None})


# --- who, and where to say that something is wrong ------------------------------------------------


def credits(config, path: Path = CITATION) -> str:
    """Who made the book, and when it was released; "" if neither is set."""
    facts = []
    author = (config.author or "").strip()
    if author and not author.lower().startswith("the authors of"):
        facts.append(f"By {html.escape(author)}")
        cff = yaml.safe_load(path.read_text(encoding="utf-8"))
        if released := cff.get("date-released"):
            facts.append(f"Version {html.escape(str(cff['version']))}, {released}")
    return " · ".join(facts)


def places(name: str, launch: dict) -> list[tuple[str, str]]:
    """Where a page's source can be edited and a mistake reported: nowhere without a repository."""
    repository = launch.get("repository", "").removesuffix("/").removesuffix(".git")
    if not repository:
        return []
    branch, host = launch.get("branch", "main"), urlsplit(repository).hostname
    between = {"github.com": "", "gitlab.com": "/-"}.get(host)
    if between is None:
        return [("The book's repository", repository)]
    field = "title" if host == "github.com" else "issue[title]"
    issue = urlencode({field: f"{name}: "})
    return [
        ("Edit this page", f"{repository}{between}/edit/{quote(branch, safe='')}/{name}.md"),
        ("Report a mistake", f"{repository}{between}/issues/new?{issue}"),
        ("The book's repository", repository),
    ]


def add_foot(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Put all this under a page's text."""
    if doctree is None or "body" not in context:
        return
    facts = [credits(app.config)] + [
        f'<a href="{html.escape(url)}">{label}</a>'
        for label, url in places(pagename, app.config.launch)
    ]
    if PRINTED.is_file():
        up = "../" * pagename.count("/")
        facts.append(f'<a href="{up}_downloads/{PRINTED.name}">The book as a PDF</a>')
    if facts := [fact for fact in facts if fact]:
        context["body"] += f'<p class="page-foot">{" · ".join(facts)}</p>'


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write what the whole book has: index, 404, sitemap, card, PDF; name each page's address."""
    if error is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    base = address(app.config.html_baseurl)
    known = {
        "title": html.escape(app.config.html_title or app.config.project),
        "front": html.escape(quote(f"{app.config.root_doc}.html")),
        "icon": html.escape(f"_static/{Path(app.config.html_favicon).name}"),
        "home": html.escape(urlsplit(base).path or "/"),
    }
    for name in ("404.html", "index.html"):
        text = Template((TEMPLATES / name).read_text(encoding="utf-8")).substitute(known)
        (output / name).write_text(text, encoding="utf-8")
    if PRINTED.is_file():
        (output / "_downloads").mkdir(exist_ok=True)
        shutil.copyfile(PRINTED, output / "_downloads" / PRINTED.name)
    made = [output / name for name in (CARD, "sitemap.xml", "robots.txt")]
    for path in made:
        path.unlink(missing_ok=True)
    names = []
    for path in output.rglob("*.html"):
        name = path.relative_to(output).as_posix()
        if name.startswith("_static/") or name == "404.html":
            continue
        page = path.read_text(encoding="utf-8")
        if (done := identify(page, name, base)) != page:
            path.write_text(done, encoding="utf-8")
        if name not in UNLISTED:
            names.append(name)
    if not base:
        return
    made[1].write_text(sitemap(names, base), encoding="utf-8")
    made[2].write_text(f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n", encoding="utf-8")
    card(app.config.project, made[0])


def set_address(app: Sphinx, config) -> None:
    """Take the book's address from `course.toml`, if that has one."""
    config.html_baseurl = read_course(ROOT).address or config.html_baseurl


def setup(app: Sphinx) -> dict:
    app.connect("config-inited", set_address)
    app.connect("html-page-context", add_foot, priority=700)
    app.connect("build-finished", finish, priority=970)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
