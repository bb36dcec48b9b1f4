import { cli, describe, runsCode, throws } from '../../../kernel/kit/annotations/index.js'
import { created, definePlugin, ok, routeOf } from '../../../kernel/plugin.js'
import { BackupReply, CreateBackupBody, HoldReply, ListBackupsReply } from '../../../schemas/daemon/backup.js'
import { undo } from '../changes/api.js'
import { DaemonErrors } from '../daemon/api.js'
import { BackupErrors, BackupFolder, BackupKeep } from './api.js'
import { needs } from './needs.js'
import type { BackupService } from './service.js'

const route = routeOf<BackupService>(describe('Backups'))

export default definePlugin({
  name: 'backup',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.BackupService),
}).surface({
  errors: [BackupErrors],
  settings: [BackupFolder, BackupKeep],
  routes: [
    route({
      method: 'GET',
      path: '/api/backups',
      summary: 'List backups in the folder of backups',
      recovery: true,
      privileged: true,
      replies: { 200: ListBackupsReply },
      handle: async service => ok(await service.list()),
    }),
    route({
      method: 'POST',
      path: '/api/backups',
      summary: 'Back up the home',
      privileged: true,
      essential: true,
      body: CreateBackupBody,
      replies: { 201: BackupReply },
      with: [
        undo({ by: 'never', why: 'a backup changes nothing; delete it if it is not needed: svc backup delete' }),
        runsCode(false),
        throws(
          BackupErrors.backup_busy,
          BackupErrors.backup_output_exists,
          BackupErrors.backup_output_invalid,
          BackupErrors.backup_recipient_invalid,
          BackupErrors.backup_failed,
        ),
      ],
      handle: async (service, { body }) => created(await service.create(body)),
    }),
    route({
      method: 'GET',
      path: '/api/backups/hold',
      summary: 'Show whether the home was restored and waits for confirmation',
      recovery: true,
      replies: { 200: HoldReply },
      handle: service => ok(service.hold()),
    }),
    route({
      method: 'POST',
      path: '/api/backups/confirm',
      summary: 'Confirm a restored home, so that it starts its work',
      privileged: true,
      essential: true,
      replies: { 200: HoldReply },
      with: [
        undo({ by: 'never', why: 'the home has started its work; stop new work: svc drain' }),
        cli('backup confirm', {
          view: { text: 'the home starts its work now; its extensions run after svc daemon restart' },
        }),
        runsCode(false),
        throws(DaemonErrors.home_not_held),
      ],
      handle: async (service, { actor }) => ok(await service.confirm(actor)),
    }),
  ],
})
