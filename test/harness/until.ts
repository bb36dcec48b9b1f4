/**
 * Asks in real time until the answer is true, however busy the machine is; throws after a minute.
 * @param subject what is awaited, for the message
 * @param state told in the message, as it is at the end
 */
export async function until(
  holds: () => unknown,
  subject: string,
  { pause = 5, state }: { pause?: number; state?: () => unknown } = {},
): Promise<void> {
  const startedAt = performance.now()
  while (!(await holds())) {
    if (performance.now() - startedAt > 60_000)
      throw new Error(`waited in vain for ${subject}${state ? `; last: ${JSON.stringify(await state())}` : ''}`)
    await new Promise(resolve => setTimeout(resolve, pause))
  }
}
