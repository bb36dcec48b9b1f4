import { defineErrors } from '../../../kernel/plugin.js'

export const ProfileErrors = defineErrors({
  task_profile_invalid: {
    status: 400,
    message: 'the execution profile is not valid',
    next: 'svc task profile set --help',
  },
})
