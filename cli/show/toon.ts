/** TOON, a compact indented table notation for agents: commas as delimiters, two spaces of indentation. */
export function toToon(value: unknown): string {
  if (isPrimitive(value)) return primitive(value)
  if (Array.isArray(value)) return arrayLines('', value).join('\n')
  return objectLines(value as object).join('\n')
}

type Primitive = string | number | boolean | null | undefined

const indent = (lines: readonly string[]) => lines.map(line => `  ${line}`)

function objectLines(value: object): string[] {
  return Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .flatMap(([name, member]) => {
      const key = keyText(name)
      if (isPrimitive(member)) return [`${key}: ${primitive(member)}`]
      if (Array.isArray(member)) return arrayLines(key, member)
      return [`${key}:`, ...indent(objectLines(member as object))]
    })
}

function arrayLines(key: string, values: readonly unknown[]): string[] {
  const head = `${key}[${values.length}]`
  if (values.length === 0) return [`${head}:`]
  if (values.every(isPrimitive)) return [`${head}: ${values.map(primitive).join(',')}`]
  const names = tableNames(values)
  if (names === undefined) return [`${head}:`, ...indent(values.flatMap(itemLines))]
  const rows = values.map(row => names.map(name => primitive((row as Record<string, Primitive>)[name])).join(','))
  return [`${head}{${names.map(keyText).join(',')}}:`, ...indent(rows)]
}

/** Names of the members when every value is an object with the same ones, all of them primitive. */
function tableNames(values: readonly unknown[]): string[] | undefined {
  const names = isPlainObject(values[0]) ? Object.keys(values[0]) : []
  const same = (value: unknown) =>
    isPlainObject(value) &&
    Object.keys(value).length === names.length &&
    names.every(name => Object.hasOwn(value, name) && isPrimitive(value[name]))
  return names.length > 0 && values.every(same) ? names : undefined
}

function itemLines(value: unknown): string[] {
  const lines = isPrimitive(value)
    ? [primitive(value)]
    : Array.isArray(value)
      ? arrayLines('', value)
      : objectLines(value as object)
  const [first, ...rest] = lines
  return first === undefined ? ['-'] : [`- ${first}`, ...indent(rest)]
}

function isPrimitive(value: unknown): value is Primitive {
  return value === null || value === undefined || typeof value !== 'object'
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function keyText(name: string): string {
  return /^[A-Za-z_][\w.]*$/.test(name) ? name : quoted(name)
}

function primitive(value: Primitive): string {
  if (value === undefined) return 'null'
  if (typeof value !== 'string') return String(value)
  return mustQuote(value) ? quoted(value) : value
}

function mustQuote(text: string): boolean {
  return (
    text === '' ||
    text !== text.trim() ||
    /^(?:true|false|null)$/.test(text) ||
    /^-?\d/.test(text) ||
    text.startsWith('-') ||
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they have to be escaped
    /[:"\\[\]{},\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/.test(text)
  )
}

function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they have to be escaped
  return `"${text.replace(/["\\]|[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, char => (char === '"' || char === '\\' ? `\\${char}` : escapeOf(char)))}"`
}

function escapeOf(char: string): string {
  const short: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
  return short[char] ?? ''
}
