/** A line that says what went wrong, in the words that programs use. */
const TELLING =
  /(?:error|exception|fatal|panic|cannot|could not|unable|failed|failure|denied|invalid|unauthori[sz]ed|not found|no such|missing|required)/i
/** Lines that frame an error without saying anything of it: stack frames, brackets, carets, the version that Node prints last. */
const FRAME =
  /^\s*(?:at\s|\^|[{}[\]()~^,;|]*\s*$|Node\.js v|node:internal|code:\s|errno:|syscall:|requireStack|throw\s)/

/** The line of a process's stderr that tells best why it ended; empty when there is none. */
export function reasonIn(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !FRAME.test(line))
  return lines.findLast(line => TELLING.test(line)) ?? lines.at(-1) ?? ''
}

/** Members of an error's `data` in which agents say the reason. */
const SPOKEN = ['message', 'details', 'detail', 'reason', 'error'] as const

/** What the `data` of a JSON-RPC error says besides its message; undefined when that is nothing. */
export function reasonOf(data: unknown, depth = 0): string | undefined {
  if (typeof data === 'string') return data.trim() || undefined
  if (typeof data !== 'object' || data === null || depth > 2) return undefined
  for (const name of SPOKEN) {
    const said = reasonOf((data as Record<string, unknown>)[name], depth + 1)
    if (said !== undefined) return said
  }
  return undefined
}
