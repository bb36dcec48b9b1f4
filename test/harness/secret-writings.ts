/** Everything as which programs write a value, made without the code under test. */
export function writingsOf(value: string): Readonly<Record<string, string>> {
  const bytes = Buffer.from(value)
  const base64 = (before: string, alphabet: 'base64' | 'base64url') =>
    Buffer.concat([Buffer.from(before), bytes]).toString(alphabet)
  const twoDigits = (byte: number) => byte.toString(16).padStart(2, '0')
  return {
    raw: value,
    'base64 at 0': base64('', 'base64'),
    'base64 at 1': base64('{', 'base64'),
    'base64 at 2': base64('{"', 'base64'),
    'base64url at 0': base64('', 'base64url'),
    'base64url at 1': base64('{', 'base64url'),
    'base64url at 2': base64('{"', 'base64url'),
    hex: bytes.toString('hex'),
    HEX: bytes.toString('hex').toUpperCase(),
    'URL component': encodeURIComponent(value),
    'URL component, lower case': encodeURIComponent(value).replace(/%../g, code => code.toLowerCase()),
    'URL by RFC 3986': [...bytes]
      .map(byte =>
        /[A-Za-z0-9_.~-]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `%${twoDigits(byte)}`,
      )
      .join(''),
    'URL form': new URLSearchParams({ v: value }).toString().slice(2),
    JSON: JSON.stringify(value).slice(1, -1),
    'JSON in JSON': JSON.stringify(JSON.stringify(value).slice(1, -1)).slice(1, -1),
    'JSON in ASCII': JSON.stringify(value)
      .slice(1, -1)
      .replace(/[^ -~]/g, one => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
    'JSON with escaped slashes': JSON.stringify(value).slice(1, -1).replaceAll('/', '\\/'),
  }
}

/** Longest part of a writing that a text still has, in characters. A few digits at the ends of base64 tell next to nothing. */
export function leakOf(text: string, writing: string): number {
  let most = 0
  for (let start = 0; start + most < writing.length; start++)
    while (start + most < writing.length && text.includes(writing.slice(start, start + most + 1))) most++
  return most
}

/** Characters that two texts have in common before {@link partsLike} keeps them. */
const kept = 9

/**
 * The parts of a long text that have nine characters in a row in common with one of the writings, and some around them: to look
 * for each part of each writing in all files of a home takes seconds.
 */
export function partsLike(text: string, writings: readonly string[]): string {
  const gram = (of: string, at: number) =>
    of.charCodeAt(at) ^ (of.charCodeAt(at + 1) << 8) ^ (of.charCodeAt(at + 2) << 16) ^ (of.charCodeAt(at + 3) << 24)
  const grams = new Set<number>()
  let around = 0
  for (const writing of writings) {
    around = Math.max(around, writing.length)
    for (let at = 0; at + 4 <= writing.length; at++) grams.add(gram(writing, at))
  }
  const parts: string[] = []
  // Of nine in a row, one of every six places begins four.
  for (let at = 0; at + 4 <= text.length; at += kept - 3)
    if (grams.has(gram(text, at))) parts.push(text.slice(Math.max(0, at - around), at + around))
  return parts.join('\0')
}
