import { expect, test } from "../fixtures";

test("shows its form and takes over in the browser", async ({ page, hydrated }) => {
  await page.goto("/login");
  await expect(page).toHaveTitle("Sign in · Tollkeeper");
  await expect(page.getByRole("heading", { name: "Sign in" })).toBeVisible();
  await expect(page.getByRole("textbox", { name: "Email" })).toBeVisible();
  await expect(page.getByLabel("Password")).toHaveAttribute("type", "password");
  await expect(page.getByRole("button", { name: "Sign in" })).toBeVisible();
  await hydrated(page);
});

test("can be filled in by keyboard alone", async ({ page, hydrated }) => {
  await page.goto("/login");
  await hydrated(page);
  await page.getByLabel("Email").focus();
  await page.keyboard.press("Tab");
  await expect(page.getByLabel("Password")).toBeFocused();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("button", { name: "Sign in" })).toBeFocused();
});

for (const theme of ["light", "dark"]) {
  test(`is accessible in the ${theme} theme`, async ({ page, context, server, hydrated, a11y }) => {
    await context.addCookies([{ name: "theme", value: theme, url: server.url }]);
    await page.goto("/login");
    await hydrated(page);
    await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
    await a11y();
  });
}

test("fits a narrow phone", async ({ page, hydrated }) => {
  await page.setViewportSize({ width: 360, height: 640 });
  await page.goto("/login");
  await hydrated(page);
  await expect(page.getByRole("button", { name: "Sign in" })).toBeInViewport();
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(overflow).toBe(0);
});

test.describe("without script", () => {
  test.use({ javaScriptEnabled: false });

  test("shows its form, and no button that would do nothing", async ({ page }) => {
    await page.goto("/login");
    await expect(page.getByLabel("Email")).toBeVisible();
    await expect(page.getByLabel("Password")).toBeVisible();
    await expect(page.getByRole("button", { name: "Sign in" })).toBeVisible();
    await expect(page.getByRole("button", { name: /^Theme/ })).toBeHidden();
  });
});
