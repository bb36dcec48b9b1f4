import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  after,
  backoffMs,
  type SupervisionEvent,
  type SupervisionStatus,
  transitions,
} from '../../../../plugins/delivery/subprocess-host/states.js'

const statuses = Object.keys(transitions) as SupervisionStatus[]
const events = [...new Set(statuses.flatMap(status => Object.keys(transitions[status])))] as SupervisionEvent[]

/** What can be reached from a state by the events that are let through. */
function reached(from: SupervisionStatus, through: (event: SupervisionEvent) => boolean = () => true) {
  const found = new Set<SupervisionStatus>([from])
  for (const status of found)
    for (const [event, next] of Object.entries(transitions[status]))
      if (through(event as SupervisionEvent)) found.add(next)
  return found
}

test('every state can be reached, and be stopped from', () => {
  assert.equal([...reached('stopped')].sort(), [...statuses].sort())
  for (const status of statuses) {
    assert.ok(reached(status, event => event === 'stop' || event === 'ended').has('stopped'), status)
  }
})

test('a failed process restarts or is given up, and a given up one stays so until stopped', () => {
  const alone = (status: SupervisionStatus) => reached(status, event => event !== 'stop')
  for (const status of ['starting', 'healthy', 'unhealthy', 'ending', 'waiting'] as const) {
    assert.ok(alone(status).has('starting') && alone(status).has('given_up'), status)
  }
  assert.equal([...alone('given_up')], ['given_up'])
})

test('transitions outside the table are impossible', () => {
  for (const status of statuses)
    for (const event of events) {
      const next = transitions[status][event]
      if (next) assert.is(after(status, event), next)
      else assert.throws(() => after(status, event), `a process that is ${status} cannot ${event}`)
    }
})

test('the back-off doubles from one second and never exceeds a minute', () => {
  assert.equal([1, 2, 3, 4].map(backoffMs), [1000, 2000, 4000, 8000])
  assert.is(backoffMs(30), 60_000)
})

test.run()
