// What files that share a process could change for each other without a trace.
import childProcess from 'node:child_process'
import fs from 'node:fs'
import fsPromises from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import os from 'node:os'
import timers from 'node:timers'

const objects = {
  globalThis,
  process,
  console,
  Date,
  'Date.prototype': Date.prototype,
  Math,
  JSON,
  Promise,
  performance,
  fs,
  'fs/promises': fsPromises,
  child_process: childProcess,
  http,
  net,
  os,
  timers,
}

/** Properties that Node and uvu set themselves, as they go. */
const passing = new Set(['globalThis.UVU_QUEUE', 'globalThis.UVU_INDEX', 'process.exitCode', 'process.argv'])

/** Node puts the value in the place of many a getter when it is first asked. */
const computed = Symbol('computed')

/** What can be seen of it now. */
export function stateOf() {
  const properties = new Map()
  for (const [name, object] of Object.entries(objects)) {
    for (const [key, { value, get }] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
      const path = `${name}.${key}`
      if (!passing.has(path) && !key.startsWith('_')) properties.set(path, get === undefined ? value : computed)
    }
  }
  for (const [key, value] of Object.entries(process.env)) properties.set(`process.env.${key}`, value)
  properties.set('process.cwd()', process.cwd())
  for (const event of process.eventNames()) {
    const name = `listeners of process for ${String(event)}`
    properties.set(name, process.listenerCount(event))
  }
  return properties
}

/** Names of what is not as it was. */
export function changesSince(before) {
  const after = stateOf()
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].filter(name => before.get(name) !== computed && !Object.is(before.get(name), after.get(name)))
}
