import type { Around } from '../../../cli/import/plan.js'

/** A person of a machine, with nothing in the environment. */
export const around = (more: Partial<Around> = {}): Around => ({
  env: {},
  user: 'me',
  userHome: '/home/me',
  now: Date.UTC(2030, 0, 1),
  timezone: 'Europe/Berlin',
  platform: 'linux',
  hasUsers: false,
  ...more,
})
