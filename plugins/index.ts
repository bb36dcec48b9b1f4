/** `svc/plugins`: the in-tree plugins by name, and what a daemon made of them needs to know. */
import type { KernelStart, Plugin } from '../kernel/plugin.js'
import agents from './agents/index.js'
import automation from './automation/index.js'
import bridges from './bridges/index.js'
import bundles from './bundles/index.js'
import daemon from './daemon/index.js'
import disk from './disk/index.js'
import events from './events/index.js'
import extensions from './extensions/index.js'
import { markInTree } from './extensions/load/wrapped.js'
import heartbeats from './heartbeats/index.js'
import hooks from './hooks/index.js'
import journals from './journals/index.js'
import mcp from './mcp/index.js'
import openapi from './openapi/index.js'
import processes, { processesWith } from './processes/index.js'
import providers from './providers/index.js'
import reconcile from './reconcile/index.js'
import resources from './resources/index.js'
import sessions from './sessions/index.js'
import sidecars from './sidecars/index.js'
import skills from './skills/index.js'
import tools from './tools/index.js'
import windowManager from './window-manager/index.js'
import workspaces from './workspaces/index.js'

export {
  agents,
  automation,
  bridges,
  bundles,
  daemon,
  disk,
  events,
  extensions,
  heartbeats,
  hooks,
  journals,
  mcp,
  openapi,
  processes,
  processesWith,
  providers,
  reconcile,
  resources,
  sessions,
  sidecars,
  skills,
  tools,
  windowManager,
  workspaces,
}

/** Parts of the kernel's work that are plugins; what else there is requires those that it uses. */
export const base: readonly Plugin[] = [processes, journals, events, openapi, reconcile]

/** All of them; the order says nothing, what a plugin requires does. */
export const inTree: readonly Plugin[] = [
  ...base,
  daemon,
  disk,
  resources,
  workspaces,
  providers,
  agents,
  sessions,
  automation,
  extensions,
  windowManager,
  hooks,
  tools,
  mcp,
  skills,
  sidecars,
  heartbeats,
  bridges,
  bundles,
]

markInTree(inTree)

/** Names of the plugins without which a boot stops. The first that is missing is named: what others build on comes first. */
export const critical = ['processes', 'journals', 'events', 'reconcile', 'daemon', 'resources'] as const

/** Finds those extensions that the operator lets take the place of plugins: `replacements` of `createKernel`. */
export async function replacements(names: readonly string[], start: KernelStart): Promise<readonly Plugin[]> {
  return (await import('./extensions/load/replacements.js')).readReplacements(names, start)
}

/** Phases of a shutdown, first to last; `http` and `socket` are the kernel's own. */
export const quiesceOrder = [
  'admission',
  'tasks',
  'workers',
  'dropins',
  'automation',
  'sessions',
  'http',
  'socket',
  'bridges',
  'network',
  'hooks',
] as const
