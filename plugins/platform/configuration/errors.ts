import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

export const ConfigErrors = defineErrors({
  setting_unknown: { status: 400, message: 'there is no such setting', next: command('doctor', '--only', 'config') },
  setting_invalid: { status: 400, message: 'the value is not valid for this setting' },
  setting_not_overlaid: { status: 400, message: 'this setting has one value for the whole daemon' },
  overlay_unknown: { status: 404, message: 'there is no such overlay' },
  overlay_taken: { status: 409, message: 'there is an overlay of this id already' },
  config_changed: { status: 409, message: 'the configuration is another one by now; read it and try again' },
  config_ambiguous: { status: 409, message: 'the file says this setting more than once; leave one of them' },
  config_file_invalid: {
    status: 409,
    message: 'the configuration file is not valid, so nothing was changed',
    next: command('config check'),
  },
})
