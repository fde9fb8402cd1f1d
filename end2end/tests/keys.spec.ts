import { expect, people, test } from "../fixtures/demo";
import { signInAs } from "../fixtures/session";

test.beforeEach(({ context, server }) => signInAs(context, server, people.sourceAdmin));

test("a key is shown once, works, and is refused once revoked", async ({ page, request, hydrated, a11y, server }) => {
  await page.goto("/settings/keys");
  await hydrated(page);
  await page.getByRole("textbox", { name: "Name" }).fill("nightly job");
  await page.getByRole("combobox", { name: "Expires" }).selectOption({ label: "In 30 days" });
  await page.getByRole("button", { name: "Create key" }).click();
  const key = await page.getByRole("textbox", { name: "New API key" }).inputValue();
  expect(key).toMatch(/^tk_[A-Za-z0-9]{49}$/);
  await a11y();

  const row = page.getByRole("row", { name: /nightly job/ });
  await expect(row).toContainText(key.slice(0, 8));
  await expect(row).not.toContainText(key);
  await expect(row).toContainText("active");
  expect(page.url()).not.toContain("tk_");
  expect(server.output()).not.toContain(key);
  const models = () => request.get("/v1/models", { headers: { authorization: `Bearer ${key}` } });
  expect((await models()).status()).toBe(200);

  await page.reload();
  await hydrated(page);
  await expect(page.getByRole("textbox", { name: "New API key" })).toHaveCount(0);
  expect(await page.content()).not.toContain(key);

  await page.getByRole("link", { name: "Revoke nightly job" }).click();
  const dialog = page.getByRole("dialog", { name: 'Revoke "nightly job"?' });
  await expect(dialog).toBeVisible();
  await a11y();
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
  await page.getByRole("link", { name: "Revoke nightly job" }).click();
  await dialog.getByRole("link", { name: "Keep it" }).click();
  await expect(dialog).toBeHidden();
  await expect(row).toContainText("active");

  await page.getByRole("link", { name: "Revoke nightly job" }).click();
  await dialog.getByRole("button", { name: "Revoke key" }).click();
  await expect(dialog).toBeHidden();
  await expect(row).toContainText("revoked");
  expect((await models()).status()).toBe(401);
});

test("a name that can't be is told, and makes no key", async ({ page, hydrated, consoleGuard }) => {
  consoleGuard.allow(/422/);
  await page.goto("/settings/keys");
  await hydrated(page);
  await page.getByRole("textbox", { name: "Name" }).fill("x".repeat(201));
  await page.getByRole("button", { name: "Create key" }).click();
  await expect(page.getByRole("alert")).toContainText("1 to 200 characters");
});

test("an admin sees everyone's keys with their owners, others their own alone", async ({ page, context, server, hydrated }) => {
  await page.goto("/settings/keys");
  await hydrated(page);
  await page.getByRole("textbox", { name: "Name" }).fill("of ada");
  await page.getByRole("button", { name: "Create key" }).click();
  await expect(page.getByRole("row", { name: /of ada/ })).toBeVisible();
  await expect(page.getByRole("columnheader", { name: "Owner" })).toHaveCount(0);

  await signInAs(context, server, "hal@demo.local");
  await page.goto("/settings/keys");
  await expect(page.getByRole("row", { name: /of ada/ })).toHaveCount(0);

  await signInAs(context, server, people.admin);
  await page.goto("/settings/keys");
  await expect(page.getByRole("row", { name: /of ada/ })).toContainText(people.sourceAdmin);
});

for (const theme of ["light", "dark"]) {
  test(`is accessible in the ${theme} theme`, async ({ page, context, server, hydrated, a11y }) => {
    await context.addCookies([{ name: "theme", value: theme, url: server.url }]);
    await page.goto("/settings/keys");
    await hydrated(page);
    await a11y();
  });
}

test("fits a narrow phone", async ({ page, hydrated }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto("/settings/keys");
  await hydrated(page);
  await page.getByRole("textbox", { name: "Name" }).fill("A name of some length that has to wrap on a phone");
  await page.getByRole("button", { name: "Create key" }).click();
  await expect(page.getByRole("textbox", { name: "New API key" })).toBeVisible();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBe(0);
});

test("viewers get a page that says so, and can't make a key by its form", async ({ page, context, server, consoleGuard }) => {
  consoleGuard.allow(/403/);
  await signInAs(context, server, people.viewer);
  expect((await page.goto("/settings/keys"))?.status()).toBe(403);
  const form = { name: "mine", workspace: "meadow", days: "" };
  for (const address of ["/settings/keys", "/_fn/create-key"]) {
    const answer = await context.request.post(`${server.url}${address}`, { form });
    expect(answer.status(), address).toBe(403);
    expect(await answer.text(), address).not.toContain("tk_");
  }
});

test.describe("without script", () => {
  test.use({ javaScriptEnabled: false });

  test("a key is made by the page's own answer and revoked after a question", async ({ page }) => {
    await page.goto("/settings/keys");
    await page.getByRole("textbox", { name: "Name" }).fill("no script");
    await page.getByRole("button", { name: "Create key" }).click();
    await expect(page.getByRole("textbox", { name: "New API key" })).toHaveValue(/^tk_/);
    expect(page.url()).not.toContain("tk_");
    await page.goto("/settings/keys");
    await expect(page.getByRole("textbox", { name: "New API key" })).toHaveCount(0);

    await page.getByRole("link", { name: "Revoke no script" }).click();
    await page.getByRole("button", { name: "Revoke key" }).click();
    await expect(page.getByRole("row", { name: /no script/ })).toContainText("revoked");
    await expect(page.getByText("The key is revoked.")).toBeVisible();
  });
});
