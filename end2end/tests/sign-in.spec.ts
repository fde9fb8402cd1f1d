import { expect, people, test } from "../fixtures/demo";

for (const javaScriptEnabled of [true, false]) {
  test.describe(javaScriptEnabled ? "with script" : "without script", () => {
    test.use({ javaScriptEnabled });

    test("signs in and goes where one wanted to", async ({ page }) => {
      await page.goto("/settings/workspaces?sort=name");
      await expect(page).toHaveURL("/login?next=%2Fsettings%2Fworkspaces%3Fsort%3Dname");
      await page.getByRole("textbox", { name: "Email" }).fill(people.admin);
      await page.getByRole("textbox", { name: "Password" }).fill("tollkeeper-demo");
      await page.getByRole("button", { name: "Sign in" }).click();
      await expect(page).toHaveURL("/settings/workspaces?sort=name");
      await expect(page.getByRole("heading", { name: "Workspaces", level: 1 })).toBeVisible();
    });

    test("tells of a wrong pair in an alert, once", async ({ page }) => {
      await page.goto("/login?next=%2Fplayground");
      await page.getByLabel("Email").fill(people.editor);
      await page.getByLabel("Password").fill("not the password");
      await page.getByRole("button", { name: "Sign in" }).click();
      await expect(page.getByRole("alert")).toContainText(/email or the password/i);
      await expect(page).toHaveURL("/login?next=%2Fplayground");
      await page.reload();
      await expect(page.getByRole("alert")).toHaveCount(0);
      await page.getByLabel("Email").fill(people.editor);
      await page.getByLabel("Password").fill("tollkeeper-demo");
      await page.getByRole("button", { name: "Sign in" }).click();
      await expect(page).toHaveURL("/playground");
    });

    test("signs out", async ({ page, signIn }) => {
      await signIn(page, people.admin);
      await page.getByText(people.admin).click();
      await page.getByRole("button", { name: "Sign out" }).click();
      await expect(page).toHaveURL("/login");
      await page.goto("/settings/workspaces");
      await expect(page).toHaveURL(/\/login\?next=/);
    });

    test("switches the workspace", async ({ page, signIn }) => {
      await signIn(page, people.editor, "/playground");
      await page.getByText(people.editor).click();
      const choice = page.getByRole("combobox", { name: "Workspace" });
      const other = (await choice.inputValue()) === "meadow" ? "harbour" : "meadow";
      await choice.selectOption(other);
      await page.getByRole("button", { name: "Switch" }).click();
      await expect(page).toHaveURL("/playground");
      await page.getByText(people.editor).click();
      await expect(page.getByRole("combobox", { name: "Workspace" })).toHaveValue(other);
    });
  });
}

test("leads to no other site", async ({ page }) => {
  await page.goto(`/login?next=${encodeURIComponent("//evil.example/")}`);
  await page.getByLabel("Email").fill(people.editor);
  await page.getByLabel("Password").fill("tollkeeper-demo");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page).toHaveURL("/playground");
});

for (const [who, start, links] of [
  ["admin", "/settings/workspaces", ["Playground", "Workspaces", "Providers", "Keys", "Audit"]],
  ["sourceAdmin", "/settings/workspaces", ["Playground", "Workspaces", "Keys"]],
  ["editor", "/playground", ["Playground", "Keys"]],
  ["viewer", "/", []],
] as const) {
  test(`the navigation of a ${who}`, async ({ page, signIn, hydrated, a11y }) => {
    await signIn(page, people[who]);
    await expect(page).toHaveURL(start);
    await hydrated(page);
    const navigation = page.getByRole("navigation", { name: "Main" });
    expect(await navigation.getByRole("link").allTextContents()).toEqual(links);
    for (const link of links) {
      await navigation.getByRole("link", { name: link }).click();
      await expect(navigation.getByRole("link", { name: link })).toHaveAttribute("aria-current", "page");
      await expect(page.getByRole("heading", { level: 1 })).toHaveText(link);
    }
    await page.getByText(`Account ${people[who]}`).click();
    await a11y();
  });
}

test("the mark leads to the start page", async ({ page, signIn, hydrated }) => {
  await signIn(page, people.admin, "/settings/audit");
  await hydrated(page);
  await page.getByRole("link", { name: "Tollkeeper" }).click();
  await expect(page).toHaveURL("/settings/workspaces");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Workspaces");
});

test("Escape closes the account menu", async ({ page, signIn, hydrated }) => {
  await signIn(page, people.editor, "/playground");
  await hydrated(page);
  await page.getByText(people.editor).click();
  await expect(page.getByRole("button", { name: "Sign out" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("button", { name: "Sign out" })).toBeHidden();
});

test("a page that one may not see says so", async ({ page, signIn, consoleGuard, hydrated, a11y }) => {
  consoleGuard.allow(/403 \(Forbidden\)/);
  await signIn(page, people.editor);
  const response = await page.goto("/settings/workspaces");
  expect(response?.status()).toBe(403);
  await hydrated(page);
  await expect(page.getByRole("heading", { name: "Not allowed" })).toBeVisible();
  await a11y();
});
