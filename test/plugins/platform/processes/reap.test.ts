import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ProcessInfo } from '../../../../plugins/platform/processes/inspect.js'
import { planReap, type ReapFacts } from '../../../../plugins/platform/processes/reap.js'
import type { ProcessRow } from '../../../../plugins/platform/processes/tables.js'

function info(pid: number, parent: number, group: number, more: Partial<ProcessInfo> = {}): ProcessInfo {
  return { pid, parent, group, startTime: `t${pid}`, name: `p${pid}`, ended: false, mark: 0, ...more }
}

function row(pid: number, startTime = `t${pid}`): ProcessRow {
  return { pid, startTime, group: pid, owner: 'o', label: 'l' }
}

const init = info(1, 0, 1)
const self = info(50, 40, 40)
const surroundings = [init, info(40, 1, 40), self]

function plan(found: ProcessInfo[], marked: number[], rows: ProcessRow[] = [], more: Partial<ReapFacts> = {}) {
  const processes = new Map([...surroundings, ...found].map(one => [one.pid, one]))
  const isMarked = (pid: number) => marked.includes(pid)
  const { targets, stale } = planReap({ processes, rows, self: 50, isMarked, ownChildren: false, ...more })
  const sorted = targets.map(({ target, ends }) => [target, ends.map(({ pid }) => pid).sort()])
  return { targets: sorted, stale: stale.map(({ pid }) => pid) }
}

test('a row ends the group of its process, a mark the group led by its process', () => {
  const found = [info(100, 1, 100), info(101, 100, 100), info(200, 1, 200), info(201, 200, 200), info(300, 1, 300)]
  assert.equal(plan(found, [200], [row(100)]), {
    targets: [
      [-100, [100, 101]],
      [-200, [200, 201]],
    ],
    stale: [],
  })
})

test('a group without its leader is ended by a marked member', () => {
  assert.equal(plan([info(101, 1, 100), info(102, 1, 100)], [102], [row(100)]), {
    targets: [[-100, [101, 102]]],
    stale: [100],
  })
  const zombie = info(100, 1, 100, { ended: true })
  assert.equal(plan([zombie, info(102, 1, 100)], [102], [row(100)]), { targets: [[-100, [102]]], stale: [100] })
})

test('without row and mark nothing is touched: another start time, an unreadable environment', () => {
  const found = [info(100, 1, 100), info(101, 1, 101)]
  assert.equal(plan(found, [], [row(100, 'earlier')]), { targets: [], stale: [100] })
})

test('only the marked process ends in a foreign group', () => {
  assert.equal(plan([info(100, 1, 100), info(101, 100, 100)], [101]), { targets: [[101, [101]]], stale: [] })
})

test('children of a marked process end with it, also in groups of their own', () => {
  const found = [info(100, 1, 100), info(101, 100, 101), info(102, 101, 101), info(103, 1, 103)]
  assert.equal(plan(found, [100]).targets, [
    [-100, [100]],
    [-101, [101, 102]],
  ])
})

test('this process and its ancestors are spared, and their groups are not signaled', () => {
  const found = [info(41, 40, 40), info(60, 1, 60)]
  const result = plan(found, [1, 40, 41, 50, 60], [row(40), row(50)])
  assert.equal(result, {
    targets: [
      [41, [41]],
      [-60, [60]],
    ],
    stale: [],
  })
})

test('children of a marked daemon, and of this one when it has started some, are spared', () => {
  const found = [info(70, 50, 70), info(71, 70, 71), info(80, 1, 80)]
  const spares = { targets: [[-80, [80]]], stale: [] }
  assert.equal(plan(found, [50, 70, 71, 80]), spares)
  assert.equal(plan(found, [70, 71, 80], [], { ownChildren: true }), spares)
  assert.is(plan(found, [70, 71, 80]).targets.length, 3)
})

test('the special groups 0 and 1 of the system call are never signaled', () => {
  const found = [info(90, 1, 1), info(91, 0, 0), info(92, 0, 0)]
  assert.equal(plan(found, [1, 90, 91]).targets, [
    [90, [90]],
    [91, [91]],
  ])
})

test('a process found earlier is ended although its leader and evidence are gone', () => {
  const found = [info(101, 1, 100), info(102, 1, 100)]
  assert.equal(plan(found, [], [], { known: new Set(['101:t101']) }).targets, [[-100, [101, 102]]])
  assert.equal(plan(found, [], [], { known: new Set(['101:earlier']) }).targets, [])
})

test.run()
