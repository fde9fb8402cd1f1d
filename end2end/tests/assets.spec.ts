import { expect, test } from "../fixtures";

test("an unknown address is a page that says so, with status 404", async ({ page, consoleGuard, hydrated, a11y }) => {
  consoleGuard.allow(/404 \(Not Found\)/);
  const response = await page.goto("/nowhere");
  expect(response?.status()).toBe(404);
  await expect(page.getByRole("heading", { name: "Not found" })).toBeVisible();
  await hydrated(page);
  await a11y();
});

test("the bundle comes compressed and is kept for ever", async ({ page, hydrated }) => {
  const wasm = page.waitForResponse(/\/pkg\/.*\.wasm$/);
  await page.goto("/login");
  await hydrated(page);
  const headers = (await wasm).headers();
  expect(headers["content-encoding"]).toMatch(/^(br|gzip)$/);
  expect(headers["content-type"]).toBe("application/wasm");
  expect(headers["cache-control"]).toContain("immutable");
});

test("a script without the response's nonce does not run", async ({ page, consoleGuard, hydrated }) => {
  consoleGuard.allow(/Content Security Policy/);
  await page.goto("/login");
  await hydrated(page);
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.documentElement.dataset.injected = 'yes'";
    document.body.append(script);
    return document.documentElement.dataset.injected;
  });
  expect(ran).toBeUndefined();
});

test("there is a favicon", async ({ request }) => {
  for (const address of ["/favicon.svg", "/favicon.ico"]) {
    const response = await request.get(address);
    expect(response.headers()["content-type"], address).toBe("image/svg+xml");
  }
});
