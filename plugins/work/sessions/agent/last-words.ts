/** Words that mark a line as an error message. */
const TELLING =
  /(?:error|exception|fatal|panic|cannot|could not|unable|failed|failure|denied|invalid|unauthori[sz]ed|not found|no such|missing|required)/i
/** Lines that frame an error without its reason: stack frames, brackets, carets, the Node version at the end. */
const FRAME =
  /^\s*(?:at\s|\^|[{}[\]()~^,;|]*\s*$|Node\.js v|node:internal|code:\s|errno:|syscall:|requireStack|throw\s)/

/** The stderr line that best explains why a process ended; empty when there is none. */
export function reasonIn(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !FRAME.test(line))
  return lines.findLast(line => TELLING.test(line)) ?? lines.at(-1) ?? ''
}

/** Members of an error's `data` in which agents put the reason. */
const SPOKEN = ['message', 'details', 'detail', 'reason', 'error'] as const

/** The reason in the `data` of a JSON-RPC error; undefined when it has none. */
export function reasonOf(data: unknown, depth = 0): string | undefined {
  if (typeof data === 'string') return data.trim() || undefined
  if (typeof data !== 'object' || data === null || depth > 2) return undefined
  for (const name of SPOKEN) {
    const said = reasonOf((data as Record<string, unknown>)[name], depth + 1)
    if (said !== undefined) return said
  }
  return undefined
}
