/** JSON with members sorted by code unit and no white space: equal values give equal text. Throws on cycles and bigints. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    if (member === null || typeof member !== 'object' || Array.isArray(member)) return member
    const names = Object.keys(member)
    // Most objects are sorted already, and rebuilding one costs more than the rest of the function.
    if (names.every((name, i) => i === 0 || (names[i - 1] as string) < name)) return member
    return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
