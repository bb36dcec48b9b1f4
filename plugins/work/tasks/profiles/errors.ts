import { command } from '../../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../../kernel/plugin.js'

export const ProfileErrors = defineErrors({
  task_profile_invalid: {
    status: 400,
    message: 'invalid execution profile',
    next: command('task profile set', '--help'),
  },
})
