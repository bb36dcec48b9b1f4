import { definePlugin } from '../../kernel/plugin.js'
import { DiskGuard } from './disk-guard.js'

export default definePlugin({ name: 'reserve', version: '0.1.0' }).surface({ disk: start => new DiskGuard(start) })
