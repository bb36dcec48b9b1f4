import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

// Ways in which a process gets out of the sight of the one that started it. Each carries a tag of the test's own in its
// arguments, by which the test finds it whatever else it has shed.

const python = ['/usr/bin/python3', '/usr/local/bin/python3'].find(file => existsSync(file))

const daemonize = `
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for fd in range(3): os.close(fd)
os.environ.clear()
os.execve("/bin/sh", ["sh", "-c", "sleep 1000; :", sys.argv[1]], {})
`

/** Forks again and again, each generation in a session of its own, ends at once but for the last. */
const generations = `
import os, sys, time
for n in range(int(sys.argv[2])):
    if os.fork(): os._exit(0)
    os.setsid()
time.sleep(1000)
`

/** Never comes to rest: each generation ends as soon as the next one is there. */
const endless = `
import os, sys
while True:
    if os.fork(): os._exit(0)
    os.setsid()
`

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const inPython = (code: string, ...args: string[]) =>
  python ? [`env -i ${python} -c ${quote(code)} ${args.join(' ')} >/dev/null 2>&1 &`] : []

/** Commands of a shell, each of which leaves processes that carry the tag, and returns at once. */
export function escapes(tag: string): string[] {
  const deaf = `trap "" TERM HUP; while :; do sleep 1; done`
  return [
    `env -i setsid sh -c 'sleep 1000; :' ${tag} >/dev/null 2>&1 </dev/null &`,
    `(env -i setsid sh -c '(setsid sh -c "sleep 1000; :" ${tag} &) ; exit' &) >/dev/null 2>&1 </dev/null`,
    `(env -i setsid sh -c '${deaf}' ${tag} &) >/dev/null 2>&1 </dev/null`,
    ...inPython(daemonize, tag),
    ...inPython(generations, tag, '50'),
  ]
}

/** As {@link escapes}, one that can only be caught in its flight; none where there is no Python. */
export function endlessFlight(tag: string): string[] {
  return inPython(endless, tag)
}

/** Living processes that have the tag among their arguments. */
export function tagged(tag: string): number[] {
  return readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(tag) ? Number(name) : []
    } catch {
      return []
    }
  })
}

/** Processes that carry the tag in any of many looks: one that forks and ends again and again is missed by most of them. */
export function taggedEver(tag: string): number[] {
  return [...new Set(Array.from({ length: 200 }, () => tagged(tag)).flat())]
}

/** Ends whatever carries the tag, also what flees. */
export function endTagged(tag: string): void {
  for (let clear = 0; clear < 50; clear++)
    for (const pid of tagged(tag)) {
      clear = 0
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended itself.
      }
    }
}

/**
 * Waits until just as many carry the tag and have settled: those that flee fork for a while, and what they fork from may stand
 * still on a busy machine before it ends. Gives back what there is after 30 s.
 */
export async function appear(tag: string, count: number): Promise<number[]> {
  let found: number[] = []
  for (let tries = 0, same = 0; tries < 150 && same < 3; tries++) {
    const now = tagged(tag)
    same = now.length === count && String(now) === String(found) ? same + 1 : 0
    found = now
    await sleep(200)
  }
  return found
}
