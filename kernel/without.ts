import type { SettingSource } from './contract/config.js'
import type { DiskRoom } from './contract/storage.js'
import { noReserve } from './store/room.js'

/**
 * Migrations of the kernel's own stream whose tables plugins have inherited: a kernel without these plugins still starts on such a
 * home.
 */
export const LEFT = {
  '001-process': 'd264b6154d881e0ae4fd58d4c278ddbc6c4fcf502da9f77d2f33a753176f5323',
  '001-event': 'a9fefd0bc86747e7cdf94bc0c83c0267580f9a722e10e37a1e04becc60321998',
  '002-source': '9d00ac37a2e6c2ed25e34ba091179e23e424d4ae7a3ae7654e3708ae67c12c7a',
  '002-outbox': '7d6e8709915ddc52b1641dc3a5c690ec8be2c3f24b66d2ca429a0a8695b89c83',
  'actor-origin': 'f99bc22e4d9d95a3af67524ded3b201c09f74e3e5b6589389ce8b389f4a93595',
  'actor-for': '833930870598561eb8675a3f6c92145e911740be4933e8a26ed3f482adc7cde4',
  'indexed-later': '0606009f8393670a21a7ab65fbfc8c400065bd474ce18a7f608c41dde0d6ff72',
}
/** Without a port for the disk, writes notice a full disk only when they fail. */
export const unwatched: DiskRoom = {
  writable: true,
  room: noReserve,
  look: async () => Number.POSITIVE_INFINITY,
  refusal: async () => undefined,
}
/** Without a port for settings, they have their defaults. */
export const unconfigured: SettingSource = {
  get: entry => entry.default,
  of: ({ path }) => ({ name: `setting ${path}`, tap() {} }),
  adopt() {},
  disown() {},
}
