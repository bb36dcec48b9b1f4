import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const WARM = 200

/**
 * By how many bytes the memory of this process grew for each of `count` calls, after as many as the heap needs to find its
 * size; `quiet` is waited for before each look.
 */
export async function rssAfter(
  count: number,
  work: (n: number) => Promise<unknown>,
  quiet: () => Promise<unknown> = async () => {},
): Promise<number> {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const look = async () => {
    await new Promise(resolve => setTimeout(resolve, 1000))
    await quiet()
    gc()
    return process.memoryUsage.rss()
  }
  for (let n = 0; n < WARM; n++) await work(n)
  const before = await look()
  for (let n = WARM; n < WARM + count; n++) await work(n)
  return ((await look()) - before) / count
}
