import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  allows,
  deriveStatus,
  FINAL_RUN,
  RUN_MOVES,
  type RunMove,
  type TaskFacts,
} from '../../../../plugins/work/tasks/states.js'
import { TaskRunStatus } from '../../../../schemas/tasks.js'

const facts = (more: Partial<TaskFacts> = {}): TaskFacts => ({
  status: 'ready',
  working: false,
  waiting: false,
  stuck: false,
  ended: undefined,
  exhausted: false,
  partFailed: false,
  needsAttention: false,
  blocked: false,
  ...more,
})

test('a terminal run has no transitions', () => {
  for (const move of Object.keys(RUN_MOVES) as RunMove[])
    for (const status of TaskRunStatus.options)
      if (FINAL_RUN.has(status)) assert.is(allows(move, status), false, `${move} from ${status}`)
})

test('an open run can be canceled and only a queued run can be claimed', () => {
  const open = TaskRunStatus.options.filter(status => !FINAL_RUN.has(status))
  assert.equal(
    open.filter(status => allows('cancel', status)),
    open,
  )
  assert.equal(
    open.filter(status => allows('claim', status)),
    ['queued'],
  )
})

const CASES: readonly (readonly [TaskFacts['status'], Partial<TaskFacts>])[] = [
  ['draft', { status: 'draft', waiting: true }],
  ['canceled', { status: 'canceled', working: true }],
  ['in_progress', { working: true, blocked: true, needsAttention: true }],
  ['completed', { ended: 'completed', blocked: true }],
  ['canceled', { ended: 'canceled' }],
  ['failed', { ended: 'failed', exhausted: true }],
  ['ready', { ended: 'failed' }],
  ['ready', { ended: 'completed', waiting: true }],
  ['needs_attention', { ended: 'failed', partFailed: true }],
  ['failed', { ended: 'failed', partFailed: true, exhausted: true }],
  ['completed', { status: 'completed', ended: 'failed', partFailed: true }],
  ['completed', { status: 'completed', ended: 'failed', partFailed: true, exhausted: true }],
  ['ready', { status: 'completed', ended: 'failed', partFailed: true, waiting: true }],
  ['failed', { status: 'failed' }],
  ['needs_attention', { stuck: true, ended: 'completed', needsAttention: true }],
  ['needs_attention', { stuck: true, ended: 'failed', exhausted: true }],
  ['needs_attention', { stuck: true, ended: 'canceled' }],
  ['ready', { stuck: true, waiting: true }],
  ['in_progress', { stuck: true, working: true, needsAttention: true }],
  ['needs_attention', { needsAttention: true, blocked: true }],
  ['blocked', { blocked: true, waiting: true }],
  ['ready', { status: 'pending' }],
]
for (const [n, [status, more]] of CASES.entries())
  test(`the status of a task follows from its facts, case ${n + 1}: ${status}`, () => {
    assert.is(deriveStatus(facts(more)), status)
  })

test.run()
