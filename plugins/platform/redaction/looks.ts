const SECRET_NAME = /(?:KEY|TOKEN|SECRET|PASSW(?:OR)?D|CREDENTIALS?|AUTH|COOKIE|SESSION_ID)$|^(?:AUTH|PASSW)/i
const REDACTED = '[redacted]'

/** Words of a name that say "secret". */
const KEY = /(?:(?:api|access|private)[_-]?key|token|secret|pass(?:w(?:or)?d|phrase)|credential|authorization|cookie)/
  .source
/** The rest of a name, and what is between it and its value: also with the quotes that JSON has, which JSON in JSON escapes. */
const IS = /[\w-]{0,128}(?:\\{0,8}["'])?\s*[=:]\s*/.source

/**
 * Forms in which secrets stand in texts; what they reveal beyond the secret stays readable. Each begins with something fixed
 * and what follows ends soon, so that no text takes a time that grows with the square of its length.
 */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${REDACTED}`],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|xox[abpr]|glpat|AKIA)[-_]?[A-Za-z0-9_-]{12,}/g, REDACTED],
  [/(:\/\/[^\s:/@]+:)[^\s@/]+@/g, `$1${REDACTED}@`],
  [/(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[\s\S]{1,16384}?(?=-----END|$)/g, `$1${REDACTED}`],
  // Up to the quote that closes it, which has as many backslashes as the one that opens it.
  [new RegExp(`(${KEY}${IS})(\\\\{0,8})(["'])(?:(?!(?<!\\\\)\\2\\3)[^\\n]){4,}`, 'gi'), `$1$2$3${REDACTED}`],
  [new RegExp(`(${KEY}${IS})(?!(?:Bearer|Basic)\\s)[^\\s"',;\\\\]{4,}`, 'gi'), `$1${REDACTED}`],
  [new RegExp(`((?:--|<)[\\w:-]{0,64}?${KEY}[\\w-]{0,128}(?:\\s+(?!-)|>))[^\\s"',;<>]{4,}`, 'gi'), `$1${REDACTED}`],
]

/** A text without what looks like a secret. Values that are known are found by the matcher, whatever they look like. */
export function redactText(text: string): string {
  return PATTERNS.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), text)
}

const isHidden = (name: string) => SECRET_NAME.test(name) && !name.startsWith('SVC_')

/** An environment whose secret-looking values are hidden by their names, and others by what they contain. */
export function redactEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [name, isHidden(name) ? REDACTED : redactText(value)]),
  )
}
