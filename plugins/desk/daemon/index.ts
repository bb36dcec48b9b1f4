import { cli, describe, runsCode, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { SecretResolvers } from '../../../kernel/kit/secret-ref.js'
import { definePlugin, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import {
  DbCheckpointReply,
  DbSizeReply,
  DbStatusReply,
  DbVerifyReply,
  DoctorQuery,
  DoctorReply,
  DrainReply,
  IdentityReply,
  PluginListReply,
  PluginQuery,
  PluginReply,
  StatusQuery,
  StatusReply,
} from '../../../schemas/daemon.js'
import { undo } from '../changes/api.js'
import {
  Checks,
  Daemon,
  DaemonActive,
  DaemonDraining,
  DaemonErrors,
  DaemonStarted,
  HealthEscalation,
  HomeConfirmed,
  KnownNames,
  StatusMembers,
} from './api.js'
import { LogSettings } from './log-settings.js'
import { needs } from './needs.js'
import type { DaemonService } from './service.js'
import { ServiceSettings } from './service-settings.js'

const route = routeOf<DaemonService>(describe('Daemon status and control'))
const { contribute } = surfaceOf<DaemonService>()

export default definePlugin({
  name: 'daemon',
  version: '0.1.0',
  requires: needs,
  provides: Daemon,
  service: () => import('./service.js').then(module => module.DaemonService),
}).surface({
  secrets: [self => self.hidden],
  declares: [StatusMembers, Checks, KnownNames, SecretResolvers],
  errors: [DaemonErrors],
  settings: [HealthEscalation, ...Object.values(LogSettings), ...Object.values(ServiceSettings)],
  events: [DaemonStarted, DaemonDraining, DaemonActive, HomeConfirmed],
  services: [{ name: 'announce', run: (self, signal) => self.announce(signal) }],
  quiesce: [{ phase: 'admission', run: self => self.closeAdmission() }],
  registries: [contribute(Checks, self => self.checks()), contribute(SecretResolvers, self => [self.variables])],
  commands: [
    {
      path: 'db verify',
      summary: 'Check the database; with the daemon stopped, also the files and journals of the home',
      load: () => import('./commands.js'),
    },
    {
      path: 'db size',
      summary: 'Show what takes room in the home: tables, free pages, folders',
      load: () => import('./commands.js').then(module => ({ run: module.runSize })),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/status',
      summary: 'Show the status of the daemon',
      recovery: true,
      query: StatusQuery,
      replies: { 200: StatusReply },
      with: [
        cli('status', {
          view: {
            item: '',
            fields: [
              { header: 'Status', path: 'daemon.status' },
              { header: 'Safe mode', path: 'daemon.safe_mode' },
              { header: 'Held', path: 'daemon.held' },
              { header: 'Version', path: 'daemon.version' },
              { header: 'PID', path: 'daemon.pid' },
              { header: 'Started', path: 'daemon.started_at', as: 'ago' },
              { header: 'HTTP host', path: 'daemon.http_host' },
              { header: 'HTTP port', path: 'daemon.http_port' },
              { header: 'HTTP off', path: 'daemon.http_off' },
              { header: 'Socket', path: 'daemon.socket' },
              { header: 'Home', path: 'config.home_dir' },
              { header: 'Active sessions', path: 'daemon.active_sessions' },
              { header: 'Sessions', path: 'daemon.total_sessions' },
              { header: 'Jobs', path: 'automation.jobs.total' },
              { header: 'Enabled jobs', path: 'automation.jobs.enabled' },
              { header: 'Since the last look', path: 'attention.summary' },
              { header: 'Queued task runs', path: 'tasks.queue_depth_total' },
              { header: 'Next fire', path: 'automation.next_fire', as: 'ago' },
              { header: 'Failing kinds', path: 'health.reconcile.failing', as: 'list' },
              { header: 'Stored, not run by this version', path: 'health.reconcile.unprojected', as: 'list' },
              { header: 'Database', path: 'health.global_db_size_bytes', as: 'bytes' },
              { header: 'Disk', path: 'health.disk.status' },
              { header: 'Disk free', path: 'health.disk.free_bytes', as: 'bytes' },
            ],
          },
        }),
        tool('observe_status', ['observe'], { visibility: 'operator' }),
      ],
      handle: async (self, { query }) => ok(await self.status(query)),
    }),
    route({
      method: 'GET',
      path: '/api/status/identity',
      summary: 'Identify the daemon; cheap enough for polling',
      recovery: true,
      public: true,
      replies: { 200: IdentityReply },
      handle: (self, { actor }) => ok(self.identity(actor)),
    }),
    route({
      method: 'GET',
      path: '/api/doctor',
      summary: 'Diagnose problems and suggest fixes',
      recovery: true,
      query: DoctorQuery,
      replies: { 200: DoctorReply },
      with: [
        cli('doctor', {
          view: {
            rows: 'items',
            columns: [
              { header: 'Severity', path: 'severity' },
              { header: 'Item', path: 'id' },
              { header: 'What', path: 'message', below: true },
              { header: 'Try', path: 'suggested_command', below: true },
            ],
            empty: 'all is well',
          },
        }),
        tool('observe_doctor', ['observe'], { visibility: 'operator' }),
      ],
      handle: async (self, { query, signal }) => ok(await self.doctor(query, signal)),
    }),
    route({
      method: 'POST',
      path: '/api/drain',
      summary: 'Refuse new work and let running work finish',
      essential: true,
      replies: { 200: DrainReply },
      privileged: true,
      with: [
        undo({ by: 'action', path: '/api/undrain' }),
        cli('drain', { view: { text: 'new work is refused until svc undrain or the next start' } }),
        runsCode(false),
      ],
      handle: async (self, { actor }) => {
        await self.setDraining(true, actor)
        return ok({ state: 'draining' as const })
      },
    }),
    route({
      method: 'POST',
      path: '/api/undrain',
      summary: 'Accept new work again',
      essential: true,
      replies: { 200: DrainReply },
      privileged: true,
      with: [
        undo({ by: 'action', path: '/api/drain' }),
        cli('undrain', { view: { text: 'the daemon accepts new work again' } }),
        runsCode(false),
      ],
      handle: async (self, { actor }) => {
        await self.setDraining(false, actor)
        return ok({ state: 'active' as const })
      },
    }),
    route({
      method: 'GET',
      path: '/api/plugins',
      summary: 'List plugins and why some do not run',
      recovery: true,
      replies: { 200: PluginListReply },
      with: [
        cli('plugin list', {
          view: {
            rows: 'plugins',
            columns: [
              { header: 'Name', path: 'name' },
              { header: 'Version', path: 'version' },
              { header: 'State', path: 'state' },
              { header: 'Holds', path: 'holds' },
              { header: 'Faults', path: 'faults' },
              { header: 'Replaced by', path: 'replaced_by' },
              { header: 'Why', path: 'reason', below: true },
            ],
          },
        }),
      ],
      handle: self => ok(self.plugins()),
    }),
    route({
      method: 'GET',
      path: '/api/plugins/{name}',
      summary: 'Show what a plugin requires, provides and holds, and its errors',
      recovery: true,
      query: PluginQuery,
      replies: { 200: PluginReply },
      with: [
        cli('plugin show', {
          view: {
            item: 'plugin',
            fields: [
              { header: 'Name', path: 'name' },
              { header: 'Version', path: 'version' },
              { header: 'State', path: 'state' },
              { header: 'Why', path: 'reason' },
              { header: 'Replaced by', path: 'replaced_by' },
              { header: 'Requires', path: 'requires', as: 'list' },
              { header: 'Provides', path: 'provides' },
              { header: 'Waits for an owner', path: 'unclaimed', as: 'list' },
              { header: 'Holds', path: 'holds', as: 'list' },
              { header: 'Faults', path: 'faults', as: 'list' },
            ],
            table: {
              path: 'surface',
              columns: [
                { header: 'Offers', path: 'what' },
                { header: 'Name', path: 'name' },
                { header: 'About', path: 'about', below: true },
                { header: 'Used by', path: 'used_by', as: 'list', below: true },
              ],
            },
          },
        }),
      ],
      handle: (self, { params, query }) => ok(self.plugin(params.name, query)),
    }),
    route({
      method: 'GET',
      path: '/api/db/status',
      summary: 'Show database files, write statistics and free disk space',
      replies: { 200: DbStatusReply },
      with: [
        cli('db status', {
          view: {
            item: '',
            fields: [
              { header: 'Status', path: 'status' },
              { header: 'Error', path: 'error' },
              { header: 'File', path: 'path' },
              { header: 'Database', path: 'bytes', as: 'bytes' },
              { header: 'Log', path: 'wal_bytes', as: 'bytes' },
              { header: 'Transactions', path: 'transactions' },
              { header: 'Syncs', path: 'syncs' },
              { header: 'Disk', path: 'disk.status' },
              { header: 'Disk free', path: 'disk.free_bytes', as: 'bytes' },
            ],
          },
        }),
      ],
      handle: async self => ok(await self.database()),
    }),
    route({
      method: 'POST',
      path: '/api/db/checkpoint',
      summary: 'Checkpoint the write-ahead log into the database',
      privileged: true,
      essential: true,
      replies: { 200: DbCheckpointReply },
      with: [
        undo({ by: 'never', why: 'it changes no data' }),
        cli('db checkpoint', {
          view: {
            item: '',
            fields: [
              { header: 'Moved', path: 'moved_bytes', as: 'bytes' },
              { header: 'Database', path: 'bytes', as: 'bytes' },
            ],
          },
        }),
        runsCode(false),
      ],
      handle: async self => ok(await self.checkpoint()),
    }),
    route({
      method: 'GET',
      path: '/api/db/size',
      summary: 'Show what takes room in the home: tables, free pages, folders',
      privileged: true,
      replies: { 200: DbSizeReply },
      handle: async self => ok(await self.size()),
    }),
    route({
      method: 'GET',
      path: '/api/db/verify',
      summary: 'Check every table of the open database',
      privileged: true,
      replies: { 200: DbVerifyReply },
      with: [throws(DaemonErrors.verify_busy)],
      handle: async self => ok(await self.verify()),
    }),
  ],
})
