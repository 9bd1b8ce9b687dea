// A citation says on hover and focus which paper it is; the list of sources is where it was.

const tip = document.createElement("div");
tip.className = "symbol-tip citation-tip";
tip.id = "citation-tip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;
document.body.append(tip);
let shown = null;
let leaving;

function hide() {
  shown?.removeAttribute("aria-describedby");
  shown = null;
  tip.hidden = true;
}

function show(link) {
  clearTimeout(leaving);
  if (shown === link) return;
  const source = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  const text = source?.matches(".citation") && source.querySelector("p");
  if (!text) return;
  hide();
  tip.replaceChildren(...[...text.childNodes].map((node) => node.cloneNode(true)));
  tip.hidden = false;
  const at = link.getClientRects()[0];
  const below = at.bottom + 6 + tip.offsetHeight < innerHeight;
  const top = below ? at.bottom + 6 : Math.max(0, at.top - 6 - tip.offsetHeight);
  const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - tip.offsetWidth - 8));
  tip.style.top = `${top + scrollY}px`;
  tip.style.left = `${left + scrollX}px`;
  link.setAttribute("aria-describedby", tip.id);
  shown = link;
}

const leave = () => {
  clearTimeout(leaving);
  leaving = setTimeout(hide, 250); // time enough to reach the tip
};

for (const link of document.querySelectorAll('article a.reference.internal[href^="#"]')) {
  if (!document.getElementById(decodeURIComponent(link.hash.slice(1)))?.matches(".citation")) continue;
  link.removeAttribute("title"); // which says the same, for readers without this script
  link.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && show(link));
  link.addEventListener("focus", () => link.matches(":focus-visible") && show(link));
  link.addEventListener("pointerleave", leave);
  link.addEventListener("blur", leave);
}
tip.addEventListener("pointerenter", () => clearTimeout(leaving));
tip.addEventListener("pointerleave", leave);
addEventListener("keydown", (event) => event.key === "Escape" && hide());
