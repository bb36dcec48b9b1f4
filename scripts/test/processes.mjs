// Processes of a test file: those of its group and, on Linux, those that inherited the mark in its environment.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Environment variable that identifies the test process a process descends from. */
export const markName = 'SVC_TEST_MARK'
/** Grace period for helper processes to exit after the file has ended; generous, because the machine may be busy. */
export const leaveMs = 5000

/** Processes that remain after the grace period, as lines for people. */
export async function remaining(group) {
  for (const until = performance.now() + leaveMs; ; await sleep(20)) {
    const left = members(group).filter(({ pid }) => pid !== group.id)
    if (left.length === 0 || performance.now() > until) return left.map(({ pid, command }) => `${pid} ${command}`)
  }
}

/** Kills the group, and processes outside of it that carry its mark. */
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
      // The process has exited, or belongs to another user.
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
