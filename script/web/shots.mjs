// Takes pictures of the dashboard's pages: node shots.mjs [--keep] LINK DIR [PAGE ...]
// Each page in light, in dark and as wide as a phone, whole; with --keep in light alone,
// as much of it as a window shows, for documents.
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const args = process.argv.slice(2);
const keep = args[0] === "--keep" && args.shift();
const [link, dir, ...pages] = args;
const looks = keep ? [["", 1180, "light"]] : [["-light", 1280, "light"], ["-dark", 1280, "dark"], ["-phone", 390, "light"]];
if (!link || !dir) {
  console.error("usage: shots.mjs LINK DIR [PAGE ...]");
  process.exit(2);
}
mkdirSync(dir, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const page = await context.newPage();
  await page.goto(link);
  await page.waitForURL((u) => !u.search);
  const base = page.url().replace(/\/$/, "");
  for (const path of pages.length ? pages : ["/"]) {
    const name = path.replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "") || "overview";
    for (const [kind, width, scheme] of looks) {
      await page.setViewportSize({ width, height: keep ? 760 : 860 });
      await page.emulateMedia({ colorScheme: scheme });
      await page.goto(base + path);
      await page.screenshot({ path: `${dir}/${name}${kind}.png`, fullPage: !keep });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
      if (wide) console.error(`${name}${kind}: the page is wider than its window`);
    }
  }
} finally {
  await browser.close();
}
