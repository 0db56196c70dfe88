"use strict";
// The server of these pages: null if they are files. `podium view` serves another file in place of
// this one, which has the address of Inspect View.
podium.served = null;
