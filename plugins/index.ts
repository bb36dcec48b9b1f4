/** `svc/plugins`: the in-tree plugins by name, and the options for a daemon of them. */
import type { Ports } from '../kernel/platform.js'
import type { KernelStart, Plugin } from '../kernel/plugin.js'
import { portsByDefault } from '../kernel/ports.js'
import auth from './access/auth/index.js'
import identity from './access/identity/index.js'
import sandboxes from './access/sandboxes/index.js'
import trust from './access/trust/index.js'
import vault from './access/vault/index.js'
import agents from './agents/agents/index.js'
import heartbeats from './agents/heartbeats/index.js'
import models from './agents/models/index.js'
import providers from './agents/providers/index.js'
import selfService from './agents/self-service/index.js'
import sidecars from './agents/sidecars/index.js'
import skills from './agents/skills/index.js'
import bundles from './delivery/bundles/index.js'
import extensions from './delivery/extensions/index.js'
import { markInTree } from './delivery/extensions/load/wrapped.js'
import installer from './delivery/installer/index.js'
import marketplace from './delivery/marketplace/index.js'
import storage from './delivery/storage/index.js'
import subprocessHost from './delivery/subprocess-host/index.js'
import archives from './desk/archives/index.js'
import backup from './desk/backup/index.js'
import changes from './desk/changes/index.js'
import console from './desk/console/index.js'
import daemon from './desk/daemon/index.js'
import settings from './desk/settings/index.js'
import support from './desk/support/index.js'
import windowManager from './desk/window-manager/index.js'
import workspaces from './desk/workspaces/index.js'
import audit from './platform/audit/index.js'
import configuration from './platform/configuration/index.js'
import { DiskGuard } from './platform/disk/disk-guard.js'
import disk from './platform/disk/index.js'
import events from './platform/events/index.js'
import files from './platform/files/index.js'
import journals from './platform/journals/index.js'
import openapi from './platform/openapi/index.js'
import ownership from './platform/ownership/index.js'
import processes, { processesWith } from './platform/processes/index.js'
import reconcile from './platform/reconcile/index.js'
import redaction from './platform/redaction/index.js'
import resources from './platform/resources/index.js'
import restart from './platform/restart/index.js'
import streams from './platform/streams/index.js'
import tcp from './platform/tcp/index.js'
import bridges from './reach/bridges/index.js'
import network from './reach/network/index.js'
import networkNats from './reach/network-nats/index.js'
import notifications from './reach/notifications/index.js'
import observe from './reach/observe/index.js'
import telemetry from './reach/telemetry/index.js'
import acp from './work/acp/index.js'
import automation from './work/automation/index.js'
import hooks from './work/hooks/index.js'
import mcp from './work/mcp/index.js'
import sessionCommands from './work/session-commands/index.js'
import sessions from './work/sessions/index.js'
import tasks from './work/tasks/index.js'
import tools from './work/tools/index.js'
import worktrees from './work/worktrees/index.js'

export { formerNames } from './former-names.js'

export {
  acp,
  agents,
  archives,
  audit,
  auth,
  automation,
  backup,
  bridges,
  bundles,
  changes,
  configuration,
  console,
  daemon,
  disk,
  events,
  extensions,
  files,
  heartbeats,
  hooks,
  identity,
  installer,
  journals,
  marketplace,
  mcp,
  models,
  network,
  networkNats,
  notifications,
  observe,
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
  sessionCommands,
  sessions,
  settings,
  sidecars,
  skills,
  storage,
  streams,
  subprocessHost,
  support,
  tasks,
  tcp,
  telemetry,
  tools,
  trust,
  vault,
  windowManager,
  workspaces,
  worktrees,
}

/** Plugins that do a part of the kernel's work; every other plugin requires the ones that it uses. */
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

/** All in-tree plugins. Their order has no effect: the host orders them by their requirements. */
export const inTree: readonly Plugin[] = [
  ...base,
  auth,
  backup,
  archives,
  daemon,
  disk,
  resources,
  workspaces,
  trust,
  settings,
  providers,
  agents,
  acp,
  sessions,
  worktrees,
  sessionCommands,
  identity,
  sandboxes,
  automation,
  tasks,
  installer,
  subprocessHost,
  extensions,
  storage,
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
  network,
  networkNats,
  notifications,
  observe,
  telemetry,
  bundles,
  vault,
  restart,
  audit,
  changes,
  support,
  console,
]

markInTree(inTree)

/**
 * Ports on the files of a home: settings from `config.json` and the environment, the reserve for a full disk, and the refusal
 * of a home without its catalog. A port works even while the plugins that use it do not run.
 */
export const filePorts = (): Ports => ({
  settings: async start => (await import('./platform/configuration/source.js')).FileSource.open(start),
  disk: start => new DiskGuard(start),
  judges: [async start => (await import('./platform/journals/catalog-guard.js')).guardCatalog(start)],
})

portsByDefault(filePorts)

/**
 * Names of the plugins without which a boot stops. The error names the first missing one, so plugins stand before their
 * dependents.
 */
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
  return (await import('./delivery/extensions/load/replacements.js')).readReplacements(names, start)
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
