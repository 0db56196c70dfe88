"use strict";
// Who serves these pages: nobody, where they are files. `podium view` answers with another file in
// this one's place, which says where Inspect View is.
podium.served = null;
