/**
 * Asks in real time until the answer is true, however busy the machine is; throws after a minute.
 * @param subject what is awaited, for the message
 */
export async function until(
  holds: () => unknown,
  subject: string,
  { pause = 5 }: { readonly pause?: number } = {},
): Promise<void> {
  const startedAt = performance.now()
  while (!(await holds())) {
    if (performance.now() - startedAt > 60_000) throw new Error(`waited in vain for ${subject}`)
    await new Promise(resolve => setTimeout(resolve, pause))
  }
}
