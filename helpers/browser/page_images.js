// Images that a page has not got yet. They come within milliseconds, so a quiet machine never waits
// as long as LONGEST_WAIT, and a busy one shows the page as a quiet one does.
({real, sleep, atMost}) => {
  const LONGEST_WAIT = 3000;

  const loaded = image => new Promise(done => {
    for (const type of ["load", "error"]) image.addEventListener(type, done, {once: true});
  });
  const waitForImages = async () => {
    const loading = [...document.images].filter(image => !image.complete);
    if (loading.length) await atMost(LONGEST_WAIT, Promise.all(loading.map(loaded)));
  };

  // Icons that a style sheet shows with `content: url()` are fetched when they are first shown, and
  // their element has no width until then. Fetched now, they belong to what the load event waits
  // for; what is left then is to wait for the browser to notice.
  const icons = []; // kept here, lest they be thrown away before they are shown
  const withIcon = new Set(); // selectors
  const withIconUnderMouse = new Set();
  const fetchIcon = (rule, base) => {
    const found = /^url\("(.*)"\)/.exec(rule.style && rule.style.content);
    if (!found) return;
    const icon = new Image();
    icon.src = new URL(found[1], base).href;
    icons.push(icon);
    if (/:before|:after/.test(rule.selectorText)) return;
    const selector = rule.selectorText.replace(/:hover/g, "");
    withIcon.add(selector);
    if (selector !== rule.selectorText) withIconUnderMouse.add(selector);
  };
  const fetchIcons = () => {
    for (const sheet of document.styleSheets) {
      for (const rule of sheet.cssRules) fetchIcon(rule, sheet.href || document.baseURI);
    }
  };
  document.addEventListener("DOMContentLoaded", fetchIcons, {once: true});

  const lacksIcon = element => {
    const [box] = element.getClientRects();
    return box && !box.width && getComputedStyle(element).content.startsWith("url");
  };
  const iconIsDue = () => [...document.querySelectorAll([...withIcon].join())].some(lacksIcon);
  const drawIcons = async () => {
    if (!withIcon.size) return;
    const end = real.perfNow() + LONGEST_WAIT;
    while (real.perfNow() < end && iconIsDue()) await sleep(5);
  };
  const changesUnderMouse = element =>
    withIconUnderMouse.size > 0 && element.matches([...withIconUnderMouse].join());

  return {waitForImages, drawIcons, changesUnderMouse};
}
