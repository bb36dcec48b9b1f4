import { defineErrors } from '../../../../kernel/plugin.js'

export const ProfileErrors = defineErrors({
  task_profile_invalid: {
    status: 400,
    message: 'invalid execution profile',
    next: 'svc task profile set --help',
  },
})
