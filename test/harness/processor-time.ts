/** Milliseconds of processor time that synchronous work takes. Wall-clock time also counts what other processes run meanwhile. */
export function processorMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
