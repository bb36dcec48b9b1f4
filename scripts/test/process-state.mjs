// Detects changes of global state by test files that share a process.
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

/** Properties that Node and uvu change themselves. */
const passing = new Set(['globalThis.UVU_QUEUE', 'globalThis.UVU_INDEX', 'process.exitCode', 'process.argv'])

/** Marks getters: Node replaces many of them by their value on first access. */
const computed = Symbol('computed')

/** A snapshot of the observable global state. */
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

/** Names of the properties that changed. */
export function changesSince(before) {
  const after = stateOf()
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].filter(name => before.get(name) !== computed && !Object.is(before.get(name), after.get(name)))
}
