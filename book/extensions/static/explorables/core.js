// Brings a page's explorables to life: <figure data-explorable="name"> holds a still SVG and its
// data as JSON; explorables/name.js exports start(), which adds controls and moves the SVG.
// Nothing moves by itself, so there is nothing to switch off for prefers-reduced-motion.

const STYLE = `
.explorable [data-part=controls] { display: grid; gap: .4rem; max-width: 40rem; margin: .5rem auto; }
.explorable label { display: grid; grid-template-columns: 9rem 1fr; align-items: center; gap: .6rem; }
.explorable input[type=range] { width: 100%; min-height: 2rem; accent-color: #0072B2; }
.explorable output { display: block; min-height: 3em; font-variant-numeric: tabular-nums; }
.cell_output .text_html:has(> .explorable) { background: none !important; color: inherit !important; }
.explorable svg { max-width: 100%; height: auto; display: block; margin: 0 auto; }
`;

async function begin(figure) {
  const name = figure.dataset.explorable;
  if (!/^[a-z_]+$/.test(name)) throw new Error(`no explorable is called ${name}`);
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const part = (key) => figure.querySelector(`[data-part="${key}"]`);
  const { start } = await import(`./${name}.js`);
  start({ figure, data, part, controls: part("controls") });
  figure.dataset.ready = "true";
}

const figures = document.querySelectorAll("figure[data-explorable]");
if (figures.length) {
  const style = document.createElement("style");
  style.textContent = STYLE;
  document.head.append(style);
  for (const figure of figures) {
    begin(figure).catch((error) => {
      figure.dataset.ready = "failed"; // the still picture stays
      console.error(error);
    });
  }
}
