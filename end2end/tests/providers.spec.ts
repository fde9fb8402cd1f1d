import { expect, people, test as base } from "../fixtures/demo";
import { type Provider, startProvider } from "../fixtures/provider";
import { signInAs } from "../fixtures/session";

const PAGE = "/settings/providers";

const test = base.extend<object, { provider: Provider }>({
  provider: [
    async ({}, use) => {
      const provider = await startProvider();
      await use(provider);
      await provider.stop();
    },
    { scope: "worker" },
  ],
});

test.describe.configure({ mode: "serial" });

test.beforeEach(async ({ context, server, provider }) => {
  provider.answer(200);
  await signInAs(context, server, people.admin);
});

/** Makes a platform of this id with a key "main" and a model "m/1", by the API. */
async function pool(request: import("@playwright/test").APIRequestContext, id: string, url: string, more = {}) {
  const made = await request.post("/api/admin/providers/platforms", { data: { id, base_url: url } });
  expect(made.status()).toBe(201);
  const model = { platform: id, model: "m/1", alias: `${id}-alias`, rpm: 20, tpd: 1000, ...more };
  expect((await request.post("/api/admin/providers/models", { data: model })).status()).toBe(201);
  const key = { platform: id, label: "main", secret: `sk-${id}-secret` };
  const added = await request.post("/api/admin/providers/keys", { data: key });
  expect(added.status()).toBe(201);
  return (await added.json()).id as string;
}

test("a platform is put together by its forms, its key never shown", async ({ page, hydrated, a11y, provider, server }) => {
  await page.goto(PAGE);
  await hydrated(page);
  await expect(page.getByRole("link", { name: "Providers" })).toHaveAttribute("aria-current", "page");
  await expect(page.getByText("The built-in demo model answers.")).toBeVisible();

  await page.getByRole("link", { name: "Add platform" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Platform id" }).fill("forms");
  await dialog.getByRole("textbox", { name: "Base URL" }).fill(provider.url);
  await a11y();
  await dialog.getByRole("button", { name: "Add platform" }).click();
  await expect(dialog).toBeHidden();
  await expect(page.getByText("The platform is added.")).toBeVisible();

  await page.getByRole("link", { name: "Add model to forms" }).click();
  await dialog.getByRole("textbox", { name: "Model id" }).fill("m/1");
  await dialog.getByRole("textbox", { name: "Alias" }).fill("forms-alias");
  await dialog.getByRole("textbox", { name: "Requests per minute" }).fill("1,000");
  await dialog.getByRole("button", { name: "Add model" }).click();
  await expect(dialog).toBeHidden();

  await page.getByRole("link", { name: "Add key to forms" }).click();
  await dialog.getByRole("textbox", { name: "Label" }).fill("main");
  await dialog.getByLabel("Secret").fill("sk-typed-here");
  await dialog.getByRole("button", { name: "Add key" }).click();
  await expect(dialog).toBeHidden();
  await expect(page.getByText("The key is added and in use.")).toBeVisible();
  expect(await page.content()).not.toContain("sk-typed-here");

  await page.getByRole("button", { name: "Test key main with m/1" }).click();
  await expect(page.getByText(/answered after \d+ ms, with 12 tokens/)).toBeVisible();
  expect(provider.keys).toContain("sk-typed-here");
  const bar = page.getByRole("progressbar", { name: "Requests per minute of m/1 under key main" });
  await expect(bar).toHaveAttribute("aria-valuenow", "1");
  await expect(bar).toHaveAttribute("aria-valuemax", "1000");

  await page.getByRole("link", { name: "Rotate key main" }).click();
  await dialog.getByLabel("Secret").fill("sk-the-second");
  await dialog.getByRole("button", { name: "Rotate key" }).click();
  await expect(dialog).toBeHidden();
  await page.getByRole("button", { name: "Test key main with m/1" }).click();
  await expect.poll(() => provider.keys).toContain("sk-the-second");

  const use = page.getByRole("switch", { name: "Use key main" });
  const key = page.getByRole("region", { name: "Key main" });
  await use.click();
  await expect(use).not.toBeChecked();
  await expect(key).toContainText("disabled");
  await expect(use).toBeFocused();
  await use.press("Space");
  await expect(use).toBeChecked();
  await expect(key).toContainText("in use");

  await page.getByRole("link", { name: "Delete key main" }).click();
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await expect(key).toBeVisible();
  await page.getByRole("link", { name: "Delete key main" }).click();
  await dialog.getByRole("button", { name: "Delete key" }).click();
  await expect(dialog).toBeHidden();
  await expect(key).toHaveCount(0);

  await page.getByRole("link", { name: "Remove platform forms" }).click();
  await dialog.getByRole("button", { name: "Remove platform" }).click();
  await expect(page.getByRole("region", { name: "forms", exact: true })).toHaveCount(0);
  expect(page.url()).not.toContain("sk-");
  expect(server.output()).not.toContain("sk-typed-here");
});

test("a bar follows a call within two seconds, and a limit is edited from before to after", async ({ page, context, hydrated, a11y, provider, consoleGuard }) => {
  // The number that is none.
  consoleGuard.allow(/422/);
  const id = await pool(context.request, "bars", provider.url);
  await page.goto(PAGE);
  await hydrated(page);
  const platform = page.getByRole("region", { name: "bars", exact: true });
  const requests = platform.getByRole("progressbar", { name: "Requests per minute of m/1 under key main" });
  await expect(requests).toHaveAttribute("aria-valuenow", "0");
  await context.request.post("/api/admin/providers/test", { data: { platform: "bars", model: "m/1", key_id: id } });
  await expect(requests).toHaveAttribute("aria-valuenow", "1", { timeout: 2_000 });
  await expect(platform.getByRole("progressbar", { name: "Tokens per day of m/1 under key main" })).toHaveAttribute("aria-valuetext", "12 of 1,000");

  await platform.getByRole("link", { name: "Edit m/1" }).click();
  const dialog = page.getByRole("dialog", { name: "Limits of m/1" });
  await expect(dialog).toContainText("Nothing to save yet.");
  await dialog.getByRole("textbox", { name: "Requests per minute" }).fill("3000");
  await dialog.getByRole("textbox", { name: "Tokens per day" }).fill("");
  await expect(dialog.getByRole("listitem").filter({ hasText: "Requests per minute" })).toHaveText(/20.*3,000/);
  await expect(dialog.getByRole("listitem").filter({ hasText: "Tokens per day" })).toHaveText(/1,000.*unlimited/);
  await a11y();
  await dialog.getByRole("button", { name: "Save change" }).click();
  await expect(dialog).toBeHidden();
  await expect(page.getByRole("status").filter({ hasText: "The model is changed" })).toHaveText(/20.*3,000/);
  await expect(requests).toHaveAttribute("aria-valuemax", "3000");

  await platform.getByRole("link", { name: "Edit m/1" }).click();
  await dialog.getByRole("textbox", { name: "Requests per minute" }).fill("many");
  await dialog.getByRole("button", { name: "Save change" }).click();
  await expect(dialog.getByRole("alert")).toContainText("equests per minute has to be a whole number");
  await context.request.delete("/api/admin/providers/platforms/bars");
});

test("a cooldown tells its reason and is cleared, and who could not be served is told", async ({ page, context, hydrated, a11y, provider }) => {
  const id = await pool(context.request, "cold", provider.url, { alias: "default" });
  provider.answer(401);
  await context.request.post("/api/admin/providers/test", { data: { platform: "cold", model: "m/1", key_id: id } });
  await page.goto(PAGE);
  await hydrated(page);
  const platform = page.getByRole("region", { name: "cold", exact: true });
  await expect(platform).toContainText("rejected the key (401); left alone until the key is changed or this is cleared.");
  await a11y();
  await platform.getByRole("button", { name: "Clear the cooldown of m/1 under key main" }).click();
  await expect(platform).not.toContainText("cooling down");
  await expect(page.getByText("The cooldown is cleared;")).toBeVisible();

  provider.answer(429, { "retry-after": "90" });
  await context.request.post("/api/admin/providers/test", { data: { platform: "cold", model: "m/1", key_id: id } });
  await expect(platform).toContainText(/over a limit of the provider's own \(429\); left alone for (2 min|\d+ s) more/);
  const refused = await context.request.post("/api/sources/generate", { data: { description: "Sales by day" } });
  expect(refused.status()).toBe(503);
  await expect(page.getByText(/of the last hour could not be served/)).toBeVisible();
  const audit = await (await context.request.get("/api/admin/audit?limit=10")).json();
  expect(audit.map((entry: { action: string }) => entry.action)).toContain("platform-cooldown.clear");
  await context.request.delete("/api/admin/providers/platforms/cold");
});

for (const theme of ["light", "dark"]) {
  test(`is accessible in the ${theme} theme`, async ({ page, context, server, hydrated, a11y, provider }) => {
    const platform = `axe-${theme}`;
    await pool(context.request, platform, provider.url);
    await context.addCookies([{ name: "theme", value: theme, url: server.url }]);
    await page.goto(PAGE);
    await hydrated(page);
    await a11y();
    await context.request.delete(`/api/admin/providers/platforms/${platform}`);
  });
}

test("fits a narrow phone", async ({ page, context, hydrated, provider }) => {
  await pool(context.request, "narrow", provider.url, { model: "a-provider/with-a-model-of-a-very-long-name-indeed:free" });
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto(PAGE);
  await hydrated(page);
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(await overflow()).toBe(0);
  await page.getByRole("link", { name: /^Edit / }).click();
  await expect(page.getByRole("dialog")).toBeVisible();
  expect(await overflow()).toBe(0);
  await context.request.delete("/api/admin/providers/platforms/narrow");
});

test("others get a page that says so, and their forms change nothing", async ({ page, context, server, consoleGuard }) => {
  consoleGuard.allow(/403/);
  await signInAs(context, server, people.sourceAdmin);
  expect((await page.goto(PAGE))?.status()).toBe(403);
  await expect(page.getByRole("link", { name: "Providers" })).toHaveCount(0);
  const answer = await context.request.post(`${server.url}/_fn/provider-add-platform`, { form: { id: "mine", base_url: "https://x/v1" } });
  expect(answer.status()).toBe(403);
  expect((await context.request.get(`${server.url}/api/live/providers`)).status()).toBe(403);
});

test.describe("without script", () => {
  test.use({ javaScriptEnabled: false });

  test("everything is shown, asked and done", async ({ page, context, provider }) => {
    const form = async (link: string, fields: Record<string, string>, button: string) => {
      await page.getByRole("link", { name: link }).click();
      for (const [label, text] of Object.entries(fields)) await page.getByRole("dialog").getByLabel(label).fill(text);
      await page.getByRole("dialog").getByRole("button", { name: button }).click();
    };
    await page.goto(PAGE);
    await form("Add platform", { "Platform id": "plain", "Base URL": provider.url }, "Add platform");
    await expect(page.getByText("The platform is added.")).toBeVisible();
    await form("Add model to plain", { "Model id": "m/1", "Requests per minute": "none" }, "Add model");
    await expect(page.getByRole("dialog").getByRole("alert")).toContainText("whole number");
    await page.getByRole("link", { name: "Cancel" }).click();
    await form("Add model to plain", { "Model id": "m/1", "Requests per minute": "7" }, "Add model");
    await form("Add key to plain", { Label: "main", Secret: "sk-plain" }, "Add key");
    await page.getByRole("button", { name: "Test key main with m/1" }).click();
    await expect(page.getByText(/answered after/)).toBeVisible();
    await expect(page.getByRole("progressbar", { name: "Requests per minute of m/1 under key main" })).toHaveAttribute("aria-valuetext", "1 of 7");
    await page.getByRole("link", { name: "Edit m/1" }).click();
    await page.getByRole("textbox", { name: "Requests per minute" }).fill("8");
    await page.getByRole("button", { name: "Save change" }).click();
    await expect(page.getByRole("status").filter({ hasText: "The model is changed" })).toHaveText(/7.*8/);
    await page.getByRole("switch", { name: "Use key main" }).click();
    await expect(page.getByRole("switch", { name: "Use key main" })).not.toBeChecked();
    await form("Delete key main", {}, "Delete key");
    await expect(page.getByRole("region", { name: "Key main" })).toHaveCount(0);
    expect(await page.content()).not.toContain("sk-plain");
    await context.request.delete("/api/admin/providers/platforms/plain");
  });
});
