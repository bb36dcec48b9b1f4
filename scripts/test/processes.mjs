// Processes of a test file: those of its group, and (Linux) those that inherited the mark in its environment.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Name of the variable by whose value a process says which test process it descends from. */
export const markName = 'SVC_TEST_MARK'
/** How long a helper of a test may take to notice that the file has ended: many times what it takes, for the machine may be busy. */
export const leaveMs = 5000

/** What lives on of a file that has ended, as lines for people, after a moment to end by itself. */
export async function remaining(group) {
  for (const until = performance.now() + leaveMs; ; await sleep(20)) {
    const left = members(group).filter(({ pid }) => pid !== group.id)
    if (left.length === 0 || performance.now() > until) return left.map(({ pid, command }) => `${pid} ${command}`)
  }
}

/** Kills the group, and what left it but still carries its mark. */
export function end(group) {
  const kill = target => {
    try {
      process.kill(target, 'SIGKILL')
    } catch {}
  }
  const left = members(group)
  if (left.some(({ inGroup }) => inGroup)) kill(-group.id)
  for (const { pid, inGroup } of left) if (!inGroup) kill(pid)
}

function members({ id, mark }) {
  if (!existsSync('/proc/self/stat')) return membersByPs(id)
  return readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const inGroup = Number(group) === id
      if (state === 'Z' || state === 'X') return []
      if (!inGroup && !`\0${readFileSync(`/proc/${name}/environ`)}`.includes(`\0${markName}=${mark}\0`)) return []
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').slice(0, 200)
      return [{ pid: Number(name), inGroup, command }]
    } catch {
      // Gone meanwhile, or not ours to read.
      return []
    }
  })
}

function membersByPs(id) {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,pgid=,state=,command='], { encoding: 'utf8' }).split('\n')
  return lines.flatMap(line => {
    const [pid, group, state = '', ...command] = line.trim().split(/\s+/)
    if (Number(group) !== id || state.startsWith('Z')) return []
    return [{ pid: Number(pid), inGroup: true, command: command.join(' ').slice(0, 200) }]
  })
}
