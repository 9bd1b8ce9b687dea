// Brings a page's explorables to life: <figure data-explorable="name"> holds a still SVG and its
// data as JSON; explorables/name.js exports start(), which adds controls and moves the SVG.
// Nothing moves by itself, so there is nothing to switch off for prefers-reduced-motion.

async function begin(figure) {
  const name = figure.dataset.explorable;
  if (!/^[a-z_]+$/.test(name)) throw new Error(`no explorable is called ${name}`);
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const part = (key) => figure.querySelector(`[data-part="${key}"]`);
  const { start } = await import(`./${name}.js`);
  start({ figure, data, part, controls: part("controls") });
  if (location.hash === `#${figure.id}`) figure.scrollIntoView(); // it has grown
  figure.dataset.ready = "true";
}

// one after the other, when the browser has nothing else to do
const idle = window.requestIdleCallback ?? ((task) => setTimeout(task, 1));
for (const figure of document.querySelectorAll("figure[data-explorable]")) {
  idle(() => {
    begin(figure).catch((error) => {
      figure.dataset.ready = "failed"; // the still picture stays
      console.error(error);
    });
  });
}
