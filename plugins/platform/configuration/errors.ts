import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

export const ConfigErrors = defineErrors({
  setting_unknown: { status: 400, message: 'there is no such setting', next: command('doctor', '--only', 'config') },
  setting_invalid: { status: 400, message: 'the value is not valid for this setting' },
  setting_not_overlaid: { status: 400, message: 'this setting has one value for the whole daemon' },
  overlay_unknown: { status: 404, message: 'there is no such overlay' },
  overlay_taken: { status: 409, message: 'an overlay with this id already exists' },
  config_changed: { status: 409, message: 'the configuration has changed; read it again and retry' },
  config_ambiguous: { status: 409, message: 'the file sets this setting more than once; keep one of them' },
  config_file_invalid: {
    status: 409,
    message: 'the configuration file is not valid, so nothing was changed',
    next: command('config check'),
  },
})
