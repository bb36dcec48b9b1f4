import {
  cli,
  columnsOf,
  describe,
  runsCode,
  show,
  throws,
  tool,
  withTable,
} from '../../../kernel/kit/annotations/index.js'
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
  type PluginOffer,
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
  secrets: [service => service.hidden],
  declares: [StatusMembers, Checks, KnownNames, SecretResolvers],
  errors: [DaemonErrors],
  settings: [HealthEscalation, ...Object.values(LogSettings), ...Object.values(ServiceSettings)],
  events: [DaemonStarted, DaemonDraining, DaemonActive, HomeConfirmed],
  services: [{ name: 'announce', run: (service, signal) => service.announce(signal) }],
  quiesce: [{ phase: 'admission', run: service => service.closeAdmission() }],
  registries: [
    contribute(Checks, service => service.checks()),
    contribute(SecretResolvers, service => [service.variables]),
  ],
  commands: [
    {
      path: 'db verify',
      summary: 'Check the database; with the daemon stopped, also the files and journals of the home',
      load: () => import('./commands.js'),
    },
    {
      path: 'db size',
      summary: 'Show disk usage of the home: tables, free pages, folders',
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
          view: show(StatusReply, '', [
            'daemon.status',
            'daemon.safe_mode',
            'daemon.held',
            'daemon.version',
            { of: 'daemon.pid', header: 'PID' },
            'daemon.started_at~ago',
            { of: 'daemon.http_host', header: 'HTTP host' },
            { of: 'daemon.http_port', header: 'HTTP port' },
            { of: 'daemon.http_off', header: 'HTTP off' },
            'daemon.socket',
            { of: 'config.home_dir', header: 'Home' },
            'daemon.active_sessions',
            { of: 'daemon.total_sessions', header: 'Sessions' },
            { of: 'automation.jobs.total', header: 'Jobs' },
            { of: 'automation.jobs.enabled', header: 'Enabled jobs' },
            { of: 'attention.summary', header: 'Since the last status' },
            { of: 'tasks.queue_depth_total', header: 'Queued task runs' },
            'automation.next_fire~ago',
            { of: 'health.reconcile.failing~list', header: 'Failing kinds' },
            { of: 'health.reconcile.unprojected~list', header: 'Stored, not run by this version' },
            { of: 'health.global_db_size_bytes~bytes', header: 'Database' },
            { of: 'health.disk.status', header: 'Disk' },
            { of: 'health.disk.free_bytes~bytes', header: 'Disk free' },
          ]),
        }),
        tool('observe_status', ['observe'], { visibility: 'operator' }),
      ],
      handle: async (service, { query }) => ok(await service.status(query)),
    }),
    route({
      method: 'GET',
      path: '/api/status/identity',
      summary: 'Identify the daemon; cheap enough for polling',
      recovery: true,
      public: true,
      replies: { 200: IdentityReply },
      handle: (service, { actor }) => ok(service.identity(actor)),
    }),
    route({
      method: 'GET',
      path: '/api/doctor',
      summary: 'Diagnose problems and suggest fixes',
      recovery: true,
      query: DoctorQuery,
      replies: { 200: DoctorReply },
      with: [
        throws(DaemonErrors.unknown_component),
        cli('doctor', {
          view: show(
            DoctorReply,
            'items',
            [
              'severity',
              { of: 'id', header: 'Item' },
              { of: 'message', header: 'What', below: true },
              { of: 'suggested_command', header: 'Try', below: true },
            ],
            { empty: 'no problems found' },
          ),
        }),
        tool('observe_doctor', ['observe'], { visibility: 'operator' }),
      ],
      handle: async (service, { query, signal }) => ok(await service.doctor(query, signal)),
    }),
    route({
      method: 'POST',
      path: '/api/drain',
      summary: 'Refuse new work and let running work finish',
      essential: true,
      replies: { 200: DrainReply },
      privileged: true,
      with: [
        undo({ by: 'action', verb: 'undrain' }),
        cli('drain', { view: { text: 'new work is refused until svc undrain or the next start' } }),
        runsCode(false),
      ],
      handle: async (service, { actor }) => {
        await service.setDraining(true, actor)
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
        undo({ by: 'action', verb: 'drain' }),
        cli('undrain', { view: { text: 'the daemon accepts new work again' } }),
        runsCode(false),
      ],
      handle: async (service, { actor }) => {
        await service.setDraining(false, actor)
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
          view: show(PluginListReply, 'plugins', [
            'name',
            'version',
            'state',
            'holds',
            'faults',
            'replaced_by',
            { of: 'reason', header: 'Why', below: true },
          ]),
        }),
      ],
      handle: service => ok(service.plugins()),
    }),
    route({
      method: 'GET',
      path: '/api/plugins/{name}',
      summary: 'Show what a plugin requires, provides and holds, and its errors',
      recovery: true,
      query: PluginQuery,
      replies: { 200: PluginReply },
      with: [
        throws(DaemonErrors.plugin_not_found),
        cli('plugin show', {
          view: withTable(
            show(PluginReply, 'plugin', [
              'name',
              'version',
              'state',
              { of: 'reason', header: 'Why' },
              'replaced_by',
              'requires~list',
              'provides',
              { of: 'unclaimed~list', header: 'Waits for an owner' },
              'holds~list',
              'faults~list',
            ]),
            'surface',
            columnsOf<PluginOffer>()([
              { of: 'what', header: 'Offers' },
              'name',
              { of: 'about', below: true },
              { of: 'used_by~list', below: true },
            ]),
          ),
        }),
      ],
      handle: (service, { params, query }) => ok(service.plugin(params.name, query)),
    }),
    route({
      method: 'GET',
      path: '/api/db/status',
      summary: 'Show database files, write statistics and free disk space',
      replies: { 200: DbStatusReply },
      with: [
        cli('db status', {
          view: show(DbStatusReply, '', [
            'status',
            'error',
            { of: 'path', header: 'File' },
            { of: 'bytes~bytes', header: 'Database' },
            { of: 'wal_bytes~bytes', header: 'Log' },
            'transactions',
            'syncs',
            { of: 'disk.status', header: 'Disk' },
            { of: 'disk.free_bytes~bytes', header: 'Disk free' },
          ]),
        }),
      ],
      handle: async service => ok(await service.database()),
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
          view: show(DbCheckpointReply, '', [
            { of: 'moved_bytes~bytes', header: 'Moved' },
            { of: 'bytes~bytes', header: 'Database' },
          ]),
        }),
        runsCode(false),
      ],
      handle: async service => ok(await service.checkpoint()),
    }),
    route({
      method: 'GET',
      path: '/api/db/size',
      summary: 'Show disk usage of the home: tables, free pages, folders',
      privileged: true,
      replies: { 200: DbSizeReply },
      handle: async service => ok(await service.size()),
    }),
    route({
      method: 'GET',
      path: '/api/db/verify',
      summary: 'Check every table of the open database',
      privileged: true,
      replies: { 200: DbVerifyReply },
      with: [throws(DaemonErrors.verify_busy)],
      handle: async service => ok(await service.verify()),
    }),
  ],
})
