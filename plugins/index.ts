/** `svc/plugins`: the in-tree plugins by name, and what a daemon made of them needs to know. */
import type { Ports } from '../kernel/platform.js'
import type { KernelStart, Plugin } from '../kernel/plugin.js'
import { portsByDefault } from '../kernel/ports.js'
import agents from './agents/index.js'
import audit from './audit/index.js'
import auth from './auth/index.js'
import automation from './automation/index.js'
import bridges from './bridges/index.js'
import bundles from './bundles/index.js'
import configuration from './configuration/index.js'
import daemon from './daemon/index.js'
import { DiskGuard } from './disk/disk-guard.js'
import disk from './disk/index.js'
import events from './events/index.js'
import extensions from './extensions/index.js'
import { markInTree } from './extensions/load/wrapped.js'
import files from './files/index.js'
import heartbeats from './heartbeats/index.js'
import hooks from './hooks/index.js'
import identity from './identity/index.js'
import journals from './journals/index.js'
import marketplace from './marketplace/index.js'
import mcp from './mcp/index.js'
import models from './models/index.js'
import openapi from './openapi/index.js'
import ownership from './ownership/index.js'
import processes, { processesWith } from './processes/index.js'
import providers from './providers/index.js'
import reconcile from './reconcile/index.js'
import redaction from './redaction/index.js'
import resources from './resources/index.js'
import restart from './restart/index.js'
import sandboxes from './sandboxes/index.js'
import selfService from './self-service/index.js'
import sessions from './sessions/index.js'
import settings from './settings/index.js'
import sidecars from './sidecars/index.js'
import skills from './skills/index.js'
import streams from './streams/index.js'
import tasks from './tasks/index.js'
import tcp from './tcp/index.js'
import tools from './tools/index.js'
import trust from './trust/index.js'
import vault from './vault/index.js'
import windowManager from './window-manager/index.js'
import workspaces from './workspaces/index.js'

export { formerNames } from './former-names.js'

export {
  agents,
  audit,
  auth,
  automation,
  bridges,
  bundles,
  configuration,
  daemon,
  disk,
  events,
  extensions,
  files,
  heartbeats,
  hooks,
  identity,
  journals,
  marketplace,
  mcp,
  models,
  openapi,
  ownership,
  processes,
  processesWith,
  providers,
  reconcile,
  redaction,
  resources,
  restart,
  sandboxes,
  selfService,
  sessions,
  settings,
  sidecars,
  skills,
  streams,
  tasks,
  tcp,
  tools,
  trust,
  vault,
  windowManager,
  workspaces,
}

/** Parts of the kernel's work that are plugins; what else there is requires those that it uses. */
export const base: readonly Plugin[] = [
  redaction,
  processes,
  journals,
  events,
  ownership,
  openapi,
  reconcile,
  files,
  configuration,
  streams,
  tcp,
]

/** All of them; the order says nothing, what a plugin requires does. */
export const inTree: readonly Plugin[] = [
  ...base,
  auth,
  daemon,
  disk,
  resources,
  workspaces,
  trust,
  settings,
  providers,
  agents,
  sessions,
  identity,
  sandboxes,
  automation,
  tasks,
  extensions,
  windowManager,
  hooks,
  tools,
  mcp,
  models,
  skills,
  marketplace,
  sidecars,
  selfService,
  heartbeats,
  bridges,
  bundles,
  vault,
  restart,
  audit,
]

markInTree(inTree)

/**
 * Ports on the files of a home: `config.json` and the environment, the reserve of a full disk, and the judge of a home whose catalog is
 * missing. They are there whether the plugins that work with them run or not.
 */
export const filePorts = (): Ports => ({
  settings: async start => (await import('./configuration/source.js')).FileSource.open(start),
  disk: start => new DiskGuard(start),
  judges: [async start => (await import('./journals/catalog-guard.js')).guardCatalog(start)],
})

portsByDefault(filePorts)

/** Names of the plugins without which a boot stops. The first that is missing is named: what others build on comes first. */
export const critical = [
  'redaction',
  'processes',
  'journals',
  'events',
  'reconcile',
  'tcp',
  'daemon',
  'resources',
] as const

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
