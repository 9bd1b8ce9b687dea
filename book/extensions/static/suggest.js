// Suggestions under a search field while somebody types: a list of passages, chosen with the arrow
// keys, a click or a tap. This is loaded when somebody goes to the field, and loads the search.

const SHOWN = 7;

function suggest(field, number) {
  const form = field.form;
  const list = document.createElement("div");
  list.id = `suggestions-${number}`;
  list.className = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Passages");
  list.hidden = true;
  form.append(list);
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", list.id);
  field.setAttribute("aria-expanded", "false");
  let chosen = -1;

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    choose(-1);
  }

  function choose(which) {
    chosen = which;
    [...list.children].forEach((option, k) => option.setAttribute("aria-selected", k === chosen));
    if (chosen < 0) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", list.children[chosen].id);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  }

  function option(passage, k) {
    const link = Object.assign(document.createElement("a"), { href: passage.url, tabIndex: -1 });
    link.id = `${list.id}-${k}`;
    link.setAttribute("role", "option");
    const where = document.createElement("span");
    where.className = "search-where";
    where.textContent = passage.page === passage.title ? "" : passage.page;
    link.append(passage.title, " ", where);
    return link;
  }

  field.addEventListener("input", async () => {
    const query = field.value.trim();
    if (!query) return close();
    const { search } = await import("./search.js");
    const found = await search(query, true);
    if (field.value.trim() !== query) return; // more has been typed
    list.replaceChildren(...found.slice(0, SHOWN).map(option));
    list.hidden = !found.length;
    field.setAttribute("aria-expanded", String(!list.hidden));
    choose(-1);
  });

  field.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const count = list.children.length;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      choose(((chosen + 1 + step + count + 1) % (count + 1)) - 1); // past the last: what was typed
    } else if (event.key === "Enter" && chosen >= 0) {
      list.children[chosen].click();
    } else if (event.key === "Escape") {
      close();
      event.stopPropagation();
    } else {
      return;
    }
    event.preventDefault();
  });

  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", () => {
    close();
    field.closest("dialog")?.close();
  });
  field.addEventListener("blur", close);
  // what was typed while this was being loaded
  if (field === document.activeElement) field.dispatchEvent(new Event("input"));
}

document.querySelectorAll("form.bd-search input[name=q]").forEach(suggest);
import("./search.js").then(({ load }) => load());
