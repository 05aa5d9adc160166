// How long pages take in a real browser: node paint.mjs NAME=LINK [NAME=LINK ...]
// For each dashboard the median of seven loads of its longest pages: until the server
// has answered, and until something is painted, in milliseconds. The dashboards are
// looked at in turn, so that what else the machine does counts for all.
import { chromium } from "playwright-core";

const given = process.argv.slice(2).map((a) => a.match(/^([^=]+)=(http.*)$/).slice(1));
const paths = process.env.PAGES?.split(" ") ?? ["/", "/runs", "/work", "/tasks", "/tasks?view=list", "/events", "/figures", "/state"];
const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const houses = [];
  for (const [name, link] of given) {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 860 } })).newPage();
    await page.goto(link);
    await page.waitForURL((u) => !u.search);
    houses.push({ name, page, base: page.url().replace(/\/$/, "") });
  }
  const rows = {};
  for (const path of paths) {
    const seen = houses.map(() => ({ server: [], paint: [] }));
    for (let i = 0; i < 8; i++) {
      for (const [n, { page, base }] of houses.entries()) {
        await page.goto(base + path);
        const [server, paint] = await page.evaluate(
          () =>
            new Promise((done) => {
              const nav = performance.getEntriesByType("navigation")[0];
              new PerformanceObserver((list, me) => {
                const first = list.getEntriesByName("first-contentful-paint")[0];
                if (!first) return;
                me.disconnect();
                done([nav.responseEnd - nav.requestStart, first.startTime]);
              }).observe({ type: "paint", buffered: true });
            }),
        );
        if (i === 0) continue; // what is read once
        seen[n].server.push(server);
        seen[n].paint.push(paint);
      }
    }
    rows[path] = Object.fromEntries(seen.flatMap((s, n) => [[`${houses[n].name}: server`, Math.round(median(s.server))], [`${houses[n].name}: paint`, Math.round(median(s.paint))]]));
  }
  console.table(rows);
} finally {
  await browser.close();
}
