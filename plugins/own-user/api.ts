/** What others read of the setting that this plugin owns. */
export { TrustOwnUser } from './settings.js'
