/** `svc/plugins`: the in-tree plugins by name, and what a daemon made of them needs to know. */
import type { Plugin } from '../kernel/plugin.js'
import agents from './agents/index.js'
import automation from './automation/index.js'
import bridges from './bridges/index.js'
import bundles from './bundles/index.js'
import daemon from './daemon/index.js'
import extensions from './extensions/index.js'
import providers from './providers/index.js'
import resources from './resources/index.js'
import sessions from './sessions/index.js'
import sidecars from './sidecars/index.js'
import windowManager from './window-manager/index.js'
import workspaces from './workspaces/index.js'

export {
  agents,
  automation,
  bridges,
  bundles,
  daemon,
  extensions,
  providers,
  resources,
  sessions,
  sidecars,
  windowManager,
  workspaces,
}

/** All of them; the order says nothing, what a plugin requires does. */
export const inTree: readonly Plugin[] = [
  daemon,
  resources,
  workspaces,
  providers,
  agents,
  sidecars,
  sessions,
  automation,
  bridges,
  windowManager,
  extensions,
  bundles,
]

/** Names of the plugins without which a boot stops. */
export const critical = ['daemon', 'resources'] as const

/** Phases of a shutdown, first to last (Behaviour 1.4); `http` and `socket` are the kernel's own. */
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
