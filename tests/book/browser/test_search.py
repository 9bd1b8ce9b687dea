"""The search: what readers type, and the passages that must be among the first three."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from .conftest import chapter_pages
from .sound import TAGS, told

CHAPTER = {name[5:7]: name for name in chapter_pages()}

# A place is a page and what stands in it: an exercise, a figure, a table to fill in, or a label.
# They keep their names when a section is retitled. One of several joined by "or" is enough.
TORCH = "notation#functions-of-torch"
QUERIES = {
    # what readers looked for and did not find
    "RoPE": "05#exercise-rotary_embedding",
    "kv cache": "04#exercise-attend_with_cache",
    "why divide by sqrt d_k": "02#pencil-sixteen-patterns or 02#fig-saturation",
    "what is a logit": "glossary#term-logits",
    "layer norm vs batch norm": "06#fig-axes",
    "query key value": "02#sec-three-views or 01#fig-three-answers",
    "why sinusoids": "05#exercise-sinusoidal_encoding or 05#exercise-shift_matrix",
    "embedding": "glossary#term-embedding",
    "rank": "glossary#term-rank",
    "GQA": "09#exercise-GroupedQueryAttention",
    "MQA": "04#smaller-caches-mqa-gqa-windows or 09#exercise-GroupedQueryAttention",
    "MLP": "06#exercise-FeedForward",
    "autoregressive": "glossary#term-autoregressive-model",
    "fine-tuning": "glossary#term-fine-tuning",
    "seq2seq": "glossary#term-encoderdecoder-model",
    "ChatGPT": "glossary#term-ChatGPT",
    "view": TORCH,
    "roll": TORCH,
    "unflatten": TORCH,
    "inference_mode": TORCH,
    # others of the kind
    "causal mask": "04#exercise-causal_mask",
    "padding mask": "04#exercise-padding_mask",
    "self-attention": "02#exercise-SelfAttention or 02#fig-flow-attention",
    "cross attention": "12#exercise-CrossAttention or 07#fig-architecture",
    "BPE": "09#exercise-byte_pair_merges",
    "LLM": "glossary#term-large-language-model",
    "perplexity": "glossary#term-perplexity",
    "nucleus sampling": "09#exercise-next_token_probabilities",
    "teacher forcing": "07#pencil-one-step-late",
    "skip connection": "06#pencil-three-layers or 06#exercise-Residual",
    "pre-LN or post-LN": "06#fig-pre-post",
    "RMSNorm": "06#pencil-two-cheaper-norms",
    "ALiBi": "05#pencil-halved-by-each-step",
    "FlashAttention": "glossary#term-FlashAttention",
    "CLS token": "11#exercise-VisionTransformer or 11#pencil-counting-tokens",
    "MLM": "10#exercise-mask_tokens or 10#fig-bert-training",
    "patch embeddings": "11#exercise-PatchEmbedding",
    "beam search": "07#exercise-beam_search",
    "label smoothing": "07#exercise-label_smoothed_cross_entropy",
    "learning rate warmup": "07#fig-schedule or 06#fig-warm-up",
    "how do I test a mask": "04#exercise-influence",
    "linear attention": "08#exercise-linear_attention",
    "vanishing gradients": "08#fig-gradient-back or 06#fig-depth",
    "contrastive loss": "12#exercise-contrastive_loss",
    "is attention an explanation": "10#exercise-attention_relevance or 10#what-is-often-said",
    "quadratic memory of attention": "glossary#term-quadratic-cost or 02#sec-costs",
    "key_padding_mask": "04#exercise-padding_mask or 04#sec-libraries",
    "why more than one head": "03#fig-two-looks or 03#fig-controls",
    "softmax overflow": "01#exercise-softmax",
    "Bahdanau attention": "02#exercise-AdditiveAttention",
}
# The section in which a place stands, and the one around it; the page is read, not drawn.
CLOSEST = """async ([url, id]) => {
  const page = new DOMParser().parseFromString(await (await fetch(url)).text(), "text/html");
  const section = page.getElementById(id)?.closest("dl.glossary dt, tr[id], section");
  return section && [section.id, section.parentElement.closest("section")?.id];
}"""


@pytest.fixture(scope="module")
def searching(chromium, server):
    """The search page, open: the first results of a query."""
    page = chromium.new_page()
    page.goto(f"{server}/search.html")

    def first(query: str) -> list[str]:
        return page.evaluate(
            """async (query) => {
              const { search } = await import(new URL("_static/search.js", location));
              return (await search(query)).slice(0, 3).map((one) => one.url);
            }""",
            query,
        )

    first.page = page
    yield first
    page.close()


@pytest.mark.share(5)
@pytest.mark.parametrize("query", QUERIES)
def test_what_is_looked_for_is_among_the_first_three(query, searching, server):
    wanted = set()
    for place in QUERIES[query].split(" or "):
        short, anchor = place.split("#")
        address = f"{server}/{CHAPTER.get(short, f'book/{short}.html')}"
        around = searching.page.evaluate(CLOSEST, [address, anchor])
        assert around, f"{place} is not there"
        wanted |= {f"{address}#{one}" for one in around if one}
    found = searching(query)
    assert wanted & set(found), f"{query}: {found}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RoPE", "rotary embedding"),
        ("KV cache", "what is the key/value cache?"),
        ("layer normalization", "layer normalisation"),
        ("masks", "the mask"),
    ],
)
def test_other_words_for_the_same_find_the_same(one, other, searching):
    assert searching(one) == searching(other)


def test_every_name_of_the_glossary_finds_its_entry(searching, open_tab):
    terms = open_tab().open("book/glossary.html").locator("dl.glossary > dt")
    names = terms.evaluate_all(
        """(all) => all.map((term) => {
          let first = term;
          while (first.previousElementSibling?.matches("dt")) first = first.previousElementSibling;
          return [term.firstChild.textContent, first.id];
        })"""
    )
    assert len(names) > 200
    assert [n for n, entry in names if not searching(n)[0].endswith(f"#{entry}")] == []


# --- while typing -------------------------------------------------------------------------------


def suggestions(page):
    return page.locator("[role=listbox] [role=option]")


def test_suggestions_come_while_typing_and_keys_choose(open_tab):
    tab = open_tab()
    page = tab.open("book/intro.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("rota")
    suggestions(page).first.wait_for()
    field = page.locator("#pst-search-dialog input[name=q]")
    assert field.get_attribute("role") == "combobox"
    assert field.get_attribute("aria-expanded") == "true"
    assert "rotary" in suggestions(page).first.inner_text().lower()
    assert field.get_attribute("aria-activedescendant") is None
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    chosen = page.locator("[role=option][aria-selected=true]")
    assert chosen.count() == 1
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    address = chosen.evaluate("(a) => a.href")
    page.keyboard.press("Enter")
    page.wait_for_url(address)
    assert tab.wrong == []


def test_without_a_choice_enter_searches_and_escape_closes(open_tab):
    tab = open_tab()
    page = tab.open("book/04_masking.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("causal m")
    suggestions(page).first.wait_for()
    page.keyboard.press("Escape")
    assert not suggestions(page).first.is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#pst-search-dialog").is_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("ask")
    suggestions(page).first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=causal+mask*")
    assert tab.wrong == []


def test_a_suggestion_on_the_same_page_leads_there(open_tab):
    page = open_tab().open(CHAPTER["05"])
    page.keyboard.press("Control+k")
    page.keyboard.type("rotary_embedding")
    link = page.locator(f"[role=option][href*='{CHAPTER['05']}']").first
    link.click()
    page.wait_for_function("location.hash !== ''")
    assert not page.locator("#pst-search-dialog").is_visible()


@pytest.mark.share(3)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_suggestions_are_accessible_and_have_room(scheme, width, open_tab):
    page = open_tab(width, scheme).open("book/intro.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("softmax")
    suggestions(page).first.wait_for()
    page.keyboard.press("ArrowDown")
    found = Axe().run(
        page, context={"include": [["#pst-search-dialog"]]}, options={"runOnly": TAGS}
    )
    assert told(found) == []
    box = page.locator("[role=listbox]").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= 900


def test_a_page_loads_nothing_of_the_search_before_somebody_searches(open_tab):
    tab = open_tab()
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    page = tab.open("book/intro.html")
    page.wait_for_load_state("networkidle")
    assert not [url for url in asked if "passages" in url or "/search.js" in url]
    page.keyboard.press("Control+k")
    page.keyboard.type("mask")
    suggestions(page).first.wait_for()
    assert [url for url in asked if "passages.json" in url]
    assert tab.wrong == []
