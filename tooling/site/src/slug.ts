/**
 * The anchor of a heading, as code hosts make it, so that one link works in the repository and on the site: lower
 * case, hyphens for spaces, and nothing but letters, digits, hyphens and underscores.
 */
export function slug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, "")
    .replaceAll(" ", "-");
}
