import type { Around } from '../../../cli/import/plan.js'

/** A person of a machine, with nothing in the environment. */
export const around = (more: Partial<Around> = {}): Around => ({
  env: {},
  user: 'me',
  userHome: '/home/me',
  timezone: 'Europe/Berlin',
  platform: 'linux',
  hasUsers: false,
  ...more,
})
