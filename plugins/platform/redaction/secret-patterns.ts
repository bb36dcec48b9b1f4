const SECRET_NAME = /(?:KEY|TOKEN|SECRET|PASSW(?:OR)?D|CREDENTIALS?|AUTH|COOKIE|SESSION_ID)$|^(?:AUTH|PASSW)/i
const REDACTED = '[redacted]'

/** Parts of names that indicate a secret. */
const KEY = /(?:(?:api|access|private)[_-]?key|token|secret|pass(?:w(?:or)?d|phrase)|credential|authorization|cookie)/
  .source
/** The rest of a name and the separator before its value, including quotes of JSON, which are escaped in nested JSON. */
const IS = /[\w-]{0,128}(?:\\{0,8}["'])?\s*[=:]\s*/.source

/**
 * Patterns of secrets in texts; the surrounding text stays readable. Each begins with a fixed part and is bounded, so that no text
 * takes quadratic time.
 */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${REDACTED}`],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|xox[abpr]|glpat|AKIA)[-_]?[A-Za-z0-9_-]{12,}/g, REDACTED],
  [/(:\/\/[^\s:/@]+:)[^\s@/]+@/g, `$1${REDACTED}@`],
  [/(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[\s\S]{1,16384}?(?=-----END|$)/g, `$1${REDACTED}`],
  // Up to the closing quote, which has as many backslashes as the opening one.
  [new RegExp(`(${KEY}${IS})(\\\\{0,8})(["'])(?:(?!(?<!\\\\)\\2\\3)[^\\n]){4,}`, 'gi'), `$1$2$3${REDACTED}`],
  [new RegExp(`(${KEY}${IS})(?!(?:Bearer|Basic)\\s)[^\\s"',;\\\\]{4,}`, 'gi'), `$1${REDACTED}`],
  [new RegExp(`((?:--|<)[\\w:-]{0,64}?${KEY}[\\w-]{0,128}(?:\\s+(?!-)|>))[^\\s"',;<>]{4,}`, 'gi'), `$1${REDACTED}`],
]

/** A text without parts that look like secrets. Registered values are found by the matcher, regardless of their form. */
export function redactText(text: string): string {
  return PATTERNS.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), text)
}

const isHidden = (name: string) => SECRET_NAME.test(name) && !name.startsWith('SVC_')

/** An environment with secret-looking values hidden, by their names or their content. */
export function redactEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [name, isHidden(name) ? REDACTED : redactText(value)]),
  )
}
